"""The ledger: one live job per key, one worker per job, nothing lost and nothing done twice."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlmodel import col, select

from app.domain.jobs import JobKind, JobState
from app.errors import JobCancelled, LeaseLost
from app.jobs.leases import ClaimRules, Leases, hold, record_steps
from app.jobs.ledger import enqueue, live_jobs, request_cancel, supersede
from app.jobs.requests import PRIORITY_GLASS, Claim, JobRequest
from app.jobs.sweeper import MAX_LOST_LEASES, sweep
from app.store.session import Store
from app.store.tables import Job
from tests.store.rows import NOW, later

REVIEW, CLOSE = JobKind.REVIEW_PULL_REQUEST, JobKind.CLOSE_PULL_REQUEST
LEASE = timedelta(seconds=60)


def request(key: str = "k", **difference: Any) -> JobRequest:
    values: dict[str, Any] = {"kind": REVIEW, "key": key}
    return JobRequest(**{**values, **difference})


async def add(store: Store, *requests: JobRequest, now: datetime = NOW) -> list[int]:
    async with store.write() as session:
        return [(await enqueue(session, each, now=now)).job_id for each in requests]


async def claim(store: Store, *, now: datetime = NOW, **rules: Any) -> Claim | None:
    values: dict[str, Any] = {"worker": "w1", "lease": LEASE}
    return await Leases(store).claim(ClaimRules(**{**values, **rules}), now=now)


async def claimed(store: Store, *, now: datetime = NOW, **rules: Any) -> Claim:
    found = await claim(store, now=now, **rules)
    assert found is not None
    return found


async def job(store: Store, job_id: int) -> Job:
    async with store.read() as session:
        return await session.get_one(Job, job_id)


async def test_a_key_is_unique_while_its_job_lives(store: Store) -> None:
    """Queued or running, a second request finds the job; once it ended, there is a new one."""
    [first] = await add(store, request())
    assert await add(store, request()) == [first]
    held = await claimed(store)
    assert await add(store, request()) == [first]
    await Leases(store).complete(held, now=NOW)
    [second] = await add(store, request())
    assert second != first


async def test_requests_at_the_same_time_make_one_job(store: Store) -> None:
    """The database decides, not a look before the leap."""
    made = await asyncio.gather(*(add(store, request()) for _ in range(8)))
    assert len({job_id for ids in made for job_id in ids}) == 1


async def test_a_repeated_request_may_hurry_a_job_but_never_delay_it(store: Store) -> None:
    """The earliest wish counts."""
    [job_id] = await add(store, request(run_at=later(30)))
    await add(store, request(run_at=later(60)))
    assert (await job(store, job_id)).run_at == later(30)
    await add(store, request(run_at=later(10)))
    assert (await job(store, job_id)).run_at == later(10)


async def test_a_job_dies_with_the_transaction_that_asked_for_it(store: Store) -> None:
    """No job without the facts that ask for it."""

    async def fail() -> None:
        async with store.write() as session:
            await enqueue(session, request(), now=NOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await claim(store) is None


async def test_many_workers_claim_each_job_once(store: Store) -> None:
    """However many ask at the same moment, a job has one owner."""
    jobs = await add(store, *(request(f"k{number}") for number in range(12)))

    async def work(name: str) -> list[int]:
        found = []
        while (held := await claim(store, worker=name)) is not None:
            found.append(held.job_id)
            await asyncio.sleep(0)
        return found

    found = await asyncio.gather(*(work(f"w{number}") for number in range(4)))
    assert sorted(job_id for ids in found for job_id in ids) == jobs


async def test_a_job_waits_for_its_time(store: Store) -> None:
    """A debounced job is not due, and the ledger says when it will be."""
    await add(store, request(run_at=later(5)))
    assert await claim(store, now=later(4)) is None
    assert await Leases(store).next_due(now=later(4)) == later(5)
    assert await claim(store, now=later(5)) is not None
    assert await Leases(store).next_due(now=later(5)) is None


@pytest.mark.parametrize(
    ("jobs", "order"),
    [
        pytest.param([(1, 0), (1, 0), (1, 0), (2, 0)], [0, 3, 1, 2], id="repositories-in-turn"),
        pytest.param([(1, 0), (1, 10), (2, 0)], [1, 2, 0], id="people-first"),
        pytest.param([(None, 0), (1, 0), (None, 0)], [0, 1, 2], id="no-repository-has-a-turn"),
        pytest.param([(3, 0), (2, 0), (1, 0)], [2, 1, 0], id="by-number-within-a-turn"),
    ],
)
async def test_claims_are_fair(
    store: Store, jobs: list[tuple[int | None, int]], order: list[int]
) -> None:
    """A repository with many jobs waits for its turn; a person waiting comes first."""
    ids = await add(
        store,
        *(
            request(f"k{number}", repository_id=repository, priority=priority)
            for number, (repository, priority) in enumerate(jobs)
        ),
    )
    found, turn = [], -1
    while (held := await claim(store, after_repository=turn)) is not None:
        found.append(held.job_id)
        turn = held.repository_id or 0
    assert found == [ids[number] for number in order]


async def test_a_lane_runs_one_job_at_a_time(store: Store) -> None:
    """The second waits until the first ended; other lanes do not wait."""
    first, second, other = await add(
        store, request("a", lane="x"), request("b", lane="x"), request("c", lane="y")
    )
    held = await claimed(store)
    assert held.job_id == first
    assert (await claimed(store)).job_id == other
    assert await claim(store) is None
    await Leases(store).complete(held, now=NOW)
    assert (await claimed(store)).job_id == second


async def test_an_installation_cannot_take_all_workers(store: Store) -> None:
    """At most so many jobs of one installation run at a time."""
    await add(store, *(request(f"k{number}", installation_id=1) for number in range(3)))
    await add(store, request("other", installation_id=2))
    found = [await claim(store, per_installation=2) for _ in range(4)]
    assert [held.installation_id for held in found if held] == [1, 1, 2]


async def test_a_full_queue_keeps_nobody_from_breaking_the_glass(store: Store) -> None:
    """It comes before everything that waits, and its installation's share does not bound it."""
    await add(store, *(request(f"k{number}", installation_id=1) for number in range(3)))
    assert [await claim(store, per_installation=1) for _ in range(2)][1] is None
    [glass] = await add(store, request("glass", installation_id=1, priority=PRIORITY_GLASS))
    assert (await claimed(store, per_installation=1)).job_id == glass


async def test_workers_claim_only_kinds_they_have_stories_for(store: Store) -> None:
    """A job nobody here can do stays queued for somebody who can."""
    await add(store, request(kind=CLOSE))
    assert await claim(store, kinds=(REVIEW,)) is None
    assert await claim(store, kinds=(CLOSE,)) is not None


async def test_a_newer_job_supersedes_queued_ones_only(store: Store) -> None:
    """Of the same subject, kind and key prefix; a running job, a command, another PR stay."""
    running, old, command, close, foreign, newest = await add(
        store,
        request("review:a0", subject="pr:1"),
        request("review:a1", subject="pr:1"),
        request("command:1", subject="pr:1"),
        request("review:close", subject="pr:1", kind=CLOSE),
        request("review:b1", subject="pr:2"),
        request("review:a2", subject="pr:1", payload={"causes": [2]}),
    )
    assert (await claimed(store)).job_id == running
    async with store.write() as session:
        gone = await supersede(
            session, kind=REVIEW, subject="pr:1", by=newest, now=NOW, key_prefix="review:"
        )
        assert [each.job_id for each in gone] == [old]
        live = [each.id for each in await live_jobs(session, subject="pr:1")]
    assert live == [running, command, close, newest]
    ended = await job(store, old)
    assert (ended.state, ended.superseded_by) == (JobState.SUPERSEDED, newest)
    assert (await job(store, foreign)).state is JobState.QUEUED


@pytest.mark.parametrize("running_only", [False, True])
async def test_cancelling_a_subject(store: Store, running_only: bool) -> None:
    """Queued jobs end at once; running ones are told, and their steps are refused from then on."""
    running, queued = await add(store, request("a", subject="pr:1"), request("b", subject="pr:1"))
    held = await claimed(store)
    async with store.write() as session:
        count = await request_cancel(
            session, subject="pr:1", reason="closed", now=NOW, running_only=running_only
        )
    assert count == (1 if running_only else 2)
    assert (await job(store, queued)).state is (
        JobState.QUEUED if running_only else JobState.CANCELLED
    )
    assert await Leases(store).cancelled([running, queued]) == {running: "closed"}

    async def record() -> None:
        async with store.write() as session:
            await record_steps(session, held, [("prepared", {})], now=NOW)

    with pytest.raises(JobCancelled, match="closed"):
        await record()
    assert await Leases(store).steps(running) == {}


async def test_a_lost_lease_is_swept_and_the_old_worker_is_locked_out(store: Store) -> None:
    """Another worker goes on from the recorded step; the first can change nothing any more."""
    [job_id] = await add(store, request())
    old = await claimed(store)
    async with store.write() as session:
        await record_steps(session, old, [("prepared", {"files": 3})], now=NOW)
    assert (await sweep(store, now=later(59))).requeued == ()
    assert (await sweep(store, now=later(61))).requeued == (job_id,)
    new = await claimed(store, now=later(61))
    assert (new.attempt, new.owner != old.owner) == (2, True)
    assert await Leases(store).steps(job_id) == {"prepared": {"files": 3}}
    leases = Leases(store)
    assert await leases.renew([old], until=later(999)) == {job_id}
    for write in (
        leases.complete(old, now=NOW),
        leases.fail(old, "x", now=NOW),
        leases.retry(old, "x", at=NOW),
        leases.give_back(old, now=NOW),
        leases.cancel(old, "x", now=NOW),
    ):
        with pytest.raises(LeaseLost):
            await write

    async def fence() -> None:
        async with store.write() as session:
            await hold(session, old)

    with pytest.raises(LeaseLost):
        await fence()
    await leases.complete(new, now=later(62))
    assert (await job(store, job_id)).state is JobState.DONE


async def test_a_renewed_lease_is_not_swept(store: Store) -> None:
    """As long as a worker renews, the job is its own."""
    await add(store, request())
    held = await claimed(store)
    assert await Leases(store).renew([held], until=later(120)) == frozenset()
    assert (await sweep(store, now=later(119))).requeued == ()


async def test_a_job_that_kills_its_workers_fails(store: Store) -> None:
    """After the fifth dead worker one more may tell of it; if that one dies too, it is over."""
    [job_id] = await add(store, request())
    for death in range(1, MAX_LOST_LEASES + 2):
        moment = later(100 * death)
        assert (await claimed(store, now=moment)).lost_leases == death - 1
        swept = await sweep(store, now=moment + LEASE + timedelta(seconds=1))
        assert (job_id in swept.failed) == (death == MAX_LOST_LEASES + 1)
    ended = await job(store, job_id)
    assert ended.state is JobState.FAILED
    assert "6 times" in (ended.error or "")


async def test_a_cancelled_job_of_a_dead_worker_does_not_come_back(store: Store) -> None:
    """Told to stop and then lost: it ends as cancelled."""
    [job_id] = await add(store, request(subject="pr:1"))
    await claimed(store)
    async with store.write() as session:
        await request_cancel(session, subject="pr:1", reason="closed", now=NOW)
    assert (await sweep(store, now=later(61))).cancelled == (job_id,)
    assert (await job(store, job_id)).state is JobState.CANCELLED


async def test_giving_back_does_not_count_as_a_try(store: Store) -> None:
    """A worker that stops politely costs the job nothing."""
    [job_id] = await add(store, request())
    await Leases(store).give_back(await claimed(store), now=NOW)
    assert (await job(store, job_id)).attempts == 0
    assert (await claimed(store)).attempt == 1


async def test_a_step_is_recorded_once(store: Store) -> None:
    """The second recording of a name fails its whole transaction."""
    await add(store, request())
    held = await claimed(store)

    async def record(result: int) -> None:
        async with store.write() as session:
            await record_steps(session, held, [("judged", result)], now=NOW)

    await record(1)
    with pytest.raises(Exception, match=r"(?i)unique"):
        await record(2)
    assert await Leases(store).steps(held.job_id) == {"judged": 1}


async def test_long_errors_are_cut(store: Store) -> None:
    """An error of any size ends the job and does not fill the database."""
    await add(store, request())
    held = await claimed(store)
    await Leases(store).fail(held, "x" * 100_000 + "\x00\ud800", now=NOW)
    async with store.read() as session:
        [ended] = (await session.exec(select(Job).where(col(Job.state) == JobState.FAILED))).all()
    assert len(ended.error or "") == 4_000
