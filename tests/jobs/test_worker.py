"""The worker: stories run once, restart where they stopped, and stop when they are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from app.clock import SystemClock
from app.domain.jobs import JobKind, JobState
from app.errors import AgentError, ForgeRateLimited, LeaseLost
from app.jobs.context import JobContext
from app.jobs.dispatch import InProcessDispatcher
from app.jobs.ledger import enqueue, request_cancel
from app.jobs.requests import JobRequest
from app.jobs.sweeper import MAX_LOST_LEASES
from app.jobs.worker import Story, Worker, WorkerOptions
from app.store.session import Store
from app.store.tables import Job

KIND = JobKind.REVIEW_PULL_REQUEST
CLOCK = SystemClock()
QUICK = {"heartbeat": 0.02, "poll": 0.02, "grace": 0.05, "concurrency": 4}


def worker(store: Store, story: Story, **difference: Any) -> Worker:
    told = difference.pop("after_failure", None)
    return Worker(
        store,
        {KIND: story},
        clock=CLOCK,
        wakeups=difference.pop("wakeups", InProcessDispatcher()),
        options=WorkerOptions(**{**QUICK, **difference}),
        after_failure={KIND: told} if told else None,
    )


@asynccontextmanager
async def running(target: Worker) -> AsyncIterator[None]:
    task = asyncio.create_task(target.run())
    try:
        yield
    finally:
        target.stop()
        await asyncio.wait_for(task, 5)


async def add(store: Store, *keys: str, **difference: Any) -> list[int]:
    async with store.write() as session:
        return [
            (
                await enqueue(
                    session, JobRequest(kind=KIND, key=key, **difference), now=CLOCK.now()
                )
            ).job_id
            for key in keys or ("k",)
        ]


async def job(store: Store, job_id: int) -> Job:
    async with store.read() as session:
        return await session.get_one(Job, job_id)


async def eventually(question: Callable[[], Awaitable[bool]], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not await question():  # noqa: ASYNC110  # the database tells nobody when it changes
            await asyncio.sleep(0.01)


async def reaches(store: Store, job_id: int, state: JobState) -> None:
    async def there() -> bool:
        return (await job(store, job_id)).state is state

    await eventually(there)


async def test_a_story_gets_its_ids_and_ends_done(store: Store) -> None:
    """The payload arrives as it was queued, and a story that returns is done."""
    seen: list[tuple[int, Any, int]] = []

    async def story(context: JobContext) -> None:
        seen.append((context.job_id, dict(context.payload), context.attempt))

    [job_id] = await add(store, payload={"number": 7})
    await worker(store, story).run_until_idle()
    assert seen == [(job_id, {"number": 7}, 1)]
    assert (await job(store, job_id)).state is JobState.DONE


async def test_a_restart_does_not_repeat_recorded_steps(store: Store) -> None:
    """The second try gets the first one's results and goes on after them."""
    worked: list[str] = []

    async def story(context: JobContext) -> None:
        async def review() -> dict[str, int]:
            worked.append("review")
            return {"findings": 2}

        assert await context.step("review", review) == {"findings": 2}
        assert context.has("review")
        if context.attempt == 1:
            raise ForgeRateLimited("slow down", retry_after=0.0)
        worked.append("publish")

    [job_id] = await add(store)
    first = worker(store, story)
    await first.run_until_idle()
    waiting = await job(store, job_id)
    assert (waiting.state, worked) == (JobState.QUEUED, ["review"])
    assert waiting.run_at > CLOCK.now(), "a failed try is not repeated at once"
    async with store.write() as session:
        (await session.get_one(Job, job_id)).run_at = CLOCK.now()
    await worker(store, story).run_until_idle()
    assert worked == ["review", "publish"]
    assert (await job(store, job_id)).state is JobState.DONE


async def test_a_failure_for_good_is_told_once(store: Store) -> None:
    """An error that no repetition helps ends the job, with its words, and somebody hears of it."""
    told: list[str] = []

    async def story(_context: JobContext) -> None:
        raise AgentError("The model answered nonsense twice.")

    async def tell(context: JobContext, error: BaseException) -> None:
        told.append(f"{context.job_id}: {error}")

    [job_id] = await add(store)
    await worker(store, story, after_failure=tell).run_until_idle()
    ended = await job(store, job_id)
    assert ended.state is JobState.FAILED
    assert ended.error == "AgentError: The model answered nonsense twice."
    assert told == [f"{job_id}: The model answered nonsense twice."]


async def test_a_job_that_killed_its_workers_is_told_and_not_tried(store: Store) -> None:
    """Its story is not run again, somebody hears that it failed, and why."""
    told: list[str] = []

    async def story(context: JobContext) -> None:
        told.append("the story ran")

    async def tell(context: JobContext, error: BaseException) -> None:
        told.append(str(error))

    [job_id] = await add(store)
    async with store.write() as session:
        row = await session.get_one(Job, job_id)
        row.lost_leases = MAX_LOST_LEASES
    await worker(store, story, after_failure=tell).run_until_idle()
    assert (await job(store, job_id)).state is JobState.FAILED
    assert told == ["The worker died 5 times while it ran this job."]


async def test_a_running_story_is_cancelled_within_two_seconds(store: Store) -> None:
    """The story is interrupted where it waits, its clean-up runs, and the job says why."""
    started, cleaned = asyncio.Event(), asyncio.Event()

    async def story(_context: JobContext) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.set()

    [job_id] = await add(store, subject="pr:1")
    async with running(worker(store, story)):
        await asyncio.wait_for(started.wait(), 5)
        async with store.write() as session:
            await request_cancel(session, subject="pr:1", reason="newer head", now=CLOCK.now())
        await asyncio.wait_for(cleaned.wait(), 2)
        await reaches(store, job_id, JobState.CANCELLED)
    assert (await job(store, job_id)).cancel_reason == "newer head"


async def test_a_protected_block_is_not_cut_in_two(store: Store) -> None:
    """The cancellation waits until the block has ended, and then arrives."""
    started = asyncio.Event()
    done: list[str] = []

    async def story(context: JobContext) -> None:
        with context.protected():
            done.append("first")
            started.set()
            await asyncio.sleep(0.2)
            done.append("second")
        await asyncio.sleep(60)
        done.append("never")

    [job_id] = await add(store, subject="pr:1")
    async with running(worker(store, story)):
        await asyncio.wait_for(started.wait(), 5)
        async with store.write() as session:
            await request_cancel(session, subject="pr:1", reason="closed", now=CLOCK.now())
        await reaches(store, job_id, JobState.CANCELLED)
    assert done == ["first", "second"]


async def test_leases_are_renewed_while_a_story_runs(store: Store) -> None:
    """A story much longer than its lease is not taken away by a sweep."""
    tries: list[int] = []

    async def story(context: JobContext) -> None:
        tries.append(context.attempt)
        await asyncio.sleep(3.0)

    [job_id] = await add(store)
    async with running(worker(store, story, lease=1.2, sweep_every=0.05, grace=2)):
        await reaches(store, job_id, JobState.DONE)
    assert tries == [1]


async def test_a_story_whose_lease_was_taken_is_stopped(store: Store) -> None:
    """The old worker stops and leaves the job to the new owner."""
    started, stopped = asyncio.Event(), asyncio.Event()

    async def story(_context: JobContext) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    [job_id] = await add(store)
    async with running(worker(store, story, lease=0.2, sweep_every=1000)):
        await asyncio.wait_for(started.wait(), 5)
        async with store.write() as session:
            row = await session.get_one(Job, job_id)
            row.lease_owner = "somebody else"
            row.lease_expires_at = CLOCK.now() + timedelta(hours=1)
        await asyncio.wait_for(stopped.wait(), 2)
    now = await job(store, job_id)
    assert (now.state, now.lease_owner) == (JobState.RUNNING, "somebody else")


async def test_a_polite_stop_gives_jobs_back(store: Store) -> None:
    """What does not end within the grace is queued again with its steps, for the next worker."""
    started = asyncio.Event()
    ended: list[str] = []

    async def story(context: JobContext) -> None:
        if context.has("half"):
            ended.append("by the next worker")
            return
        await context.record("half")
        started.set()
        await asyncio.sleep(60)

    [job_id] = await add(store)
    async with running(worker(store, story)):
        await asyncio.wait_for(started.wait(), 5)
    back = await job(store, job_id)
    assert (back.state, back.attempts, back.lease_owner) == (JobState.QUEUED, 0, None)
    await worker(store, story).run_until_idle()
    assert ended == ["by the next worker"]


async def test_a_polite_stop_lets_short_steps_end(store: Store) -> None:
    """A story that heeds `stopping` finishes within the grace."""
    started = asyncio.Event()

    async def story(context: JobContext) -> None:
        started.set()
        await context.stopping.wait()

    [job_id] = await add(store)
    async with running(worker(store, story, grace=5)):
        await asyncio.wait_for(started.wait(), 5)
    assert (await job(store, job_id)).state is JobState.DONE


async def test_jobs_of_a_dead_worker_are_taken_over(store: Store) -> None:
    """A worker that was killed leaves a lease; a living one sweeps it and does the job."""
    [job_id] = await add(store)
    async with store.write() as session:
        row = await session.get_one(Job, job_id)
        row.state, row.lease_owner, row.attempts = JobState.RUNNING, "dead", 1
        row.lease_expires_at = CLOCK.now()
    tries: list[int] = []

    async def story(context: JobContext) -> None:
        tries.append(context.attempt)

    async with running(worker(store, story, sweep_every=0.05)):
        await reaches(store, job_id, JobState.DONE)
    assert tries == [2]


async def test_two_workers_share_the_work(store: Store) -> None:
    """Every job runs once, over both of them."""
    runs: list[int] = []

    async def story(context: JobContext) -> None:
        runs.append(context.job_id)
        await asyncio.sleep(0.001)

    jobs = await add(store, *(f"k{number}" for number in range(20)))
    await asyncio.gather(*(worker(store, story).run_until_idle() for _ in range(2)))
    assert sorted(runs) == jobs


async def test_concurrency_is_bounded(store: Store) -> None:
    """Never more stories at a time than the worker may run."""
    now, most = 0, 0
    three_at_a_time = asyncio.Barrier(3)

    async def story(_context: JobContext) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.wait_for(three_at_a_time.wait(), 5)
        now -= 1

    await add(store, *(f"k{number}" for number in range(9)))
    await worker(store, story, concurrency=3).run_until_idle()
    assert most == 3


async def test_a_notice_wakes_the_worker(store: Store) -> None:
    """In one process a job starts at once, not at the next poll."""
    dispatcher = InProcessDispatcher()
    ran = asyncio.Event()

    async def story(_context: JobContext) -> None:
        ran.set()

    async with running(worker(store, story, wakeups=dispatcher, poll=60)):
        await asyncio.sleep(0.05)
        await add(store)
        dispatcher.notify()
        await asyncio.wait_for(ran.wait(), 5)
    assert ran.is_set()


async def test_a_story_that_waits_for_its_time_starts_on_time(store: Store) -> None:
    """A debounced job starts when it is due although the poll is far away."""
    ran = asyncio.Event()

    async def story(_context: JobContext) -> None:
        ran.set()

    async with store.write() as session:
        due = CLOCK.now() + timedelta(seconds=0.2)
        await enqueue(session, JobRequest(kind=KIND, key="k", run_at=due), now=CLOCK.now())
    async with running(worker(store, story, poll=60)):
        await asyncio.wait_for(ran.wait(), 5)
    assert CLOCK.now() >= due


async def test_a_step_cannot_be_recorded_for_a_lost_job(store: Store) -> None:
    """A story that lost its job without noticing is told by its next step."""
    seen: list[type[BaseException]] = []

    async def story(context: JobContext) -> None:
        async with store.write() as session:
            (await session.get_one(Job, context.job_id)).lease_owner = "somebody else"
        for check in (context.check_live(), context.record("late")):
            with pytest.raises(LeaseLost) as caught:
                await check
            seen.append(caught.type)

    await add(store)
    await worker(store, story).run_until_idle()
    assert seen == [LeaseLost, LeaseLost]


async def test_what_people_wait_for_has_places_of_its_own(store: Store) -> None:
    """While every place is taken by a long review, a comment is answered; another review waits."""
    go_on, heard = asyncio.Event(), asyncio.Event()

    async def review(_context: JobContext) -> None:
        await go_on.wait()

    async def comment(_context: JobContext) -> None:
        heard.set()

    target = Worker(
        store,
        {KIND: review, JobKind.HANDLE_COMMENT: comment},
        clock=CLOCK,
        wakeups=InProcessDispatcher(),
        options=WorkerOptions(concurrency=1, heartbeat=0.02, poll=0.02, grace=0.05),
    )
    first, second = await add(store, "first", "second")
    async with running(target):
        await reaches(store, first, JobState.RUNNING)
        async with store.write() as session:
            request = JobRequest(kind=JobKind.HANDLE_COMMENT, key="comment")
            await enqueue(session, request, now=CLOCK.now())
        await asyncio.wait_for(heard.wait(), 2)
        assert (await job(store, second)).state is JobState.QUEUED
        go_on.set()
