"""Stories of the end of a pull request: what is handed off, once, and what is not, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.domain.jobs import JobKind, JobState
from app.domain.pull_request import PullRequestState
from app.domain.tasks import FixTaskState, OrderState
from app.errors import ForgeUnavailable
from app.jobs.requests import JobRequest, pull_request_subject
from app.store.tables import FindingRow, FixTask, Order
from loop_guards import FindingStatus, Severity
from tests.handoff.fixtures import MakeStage, in_module_loop
from tests.handoff.stage import FILE, SOURCE, Stage, at
from tests.store.rows import REPOSITORY

pytestmark = in_module_loop

CLOSING = JobKind.CLOSE_PULL_REQUEST


async def order(stage: Stage, finding_id: int, source: str = "comment:1") -> None:
    async with stage.store.write() as session:
        session.add(
            Order(
                finding_id=finding_id,
                ordered_by_id=1,
                ordered_by_login="alice",
                ordered_at=stage.clock.now(),
                source=source,
            )
        )


async def merged(stage: Stage, **files: bytes) -> None:
    """The merge, its delivery and the plan; turns are left queued."""
    stage.merge(files=files or None)
    await stage.queue(stage.close_request())
    await stage.run(CLOSING)


async def test_three_findings_of_one_file_become_one_task(stage: Stage) -> None:
    """One automated fix per file: findings that share it share the task (DESIGN 3.2)."""
    stage.open()
    for title in ("one", "two", "three"):
        await stage.finds(title=title)
    await merged(stage)
    task = await stage.task()
    assert (task.state, task.paths, task.allowance) == (FixTaskState.QUEUED, [FILE], 5)
    assert [row.fix_task_id for row in await stage.findings()] == [task.id] * 3
    assert [job.state for job in await stage.jobs(JobKind.RUN_FIX_TASK)] == [JobState.QUEUED]
    assert await stage.reasons("handoff") == ["auto"] * 3
    (said,) = stage.comments()
    assert "F1, F2, F3 in `app/a.py`" in said


async def test_a_doubled_delivery_makes_nothing_again(stage: Stage) -> None:
    """The automatic plan is made once per merge commit, however often the merge is told."""
    stage.open()
    await stage.finds()
    stage.merge()
    for delivery in ("d1", "d2"):
        await stage.queue(stage.close_request(delivery=delivery))
    await stage.run(CLOSING)
    await stage.queue(stage.close_request(delivery="d3"))
    await stage.run(CLOSING)
    assert len(await stage.tasks()) == 1
    assert len(await stage.reasons("handoff")) == 1
    assert len(stage.comments()) == 1


async def test_a_crash_between_plan_and_words_says_what_the_plan_said(stage: Stage) -> None:
    """What is said belongs to the plan that was stored, not to the world of the second try."""
    stage.open()
    await stage.finds()
    stage.merge()
    stage.reviewer.fail_next("ensure_comment", ForgeUnavailable("no answer"))
    await stage.queue(stage.close_request())
    await stage.run(CLOSING)
    assert (len(await stage.tasks()), stage.comments()) == (1, [])
    await stage.later(minutes=1)
    (said,) = stage.comments()
    assert "F1 in `app/a.py`" in said
    assert len(await stage.tasks()) == 1


async def test_an_unmerged_end_hands_off_nothing_and_discards_orders(stage: Stage) -> None:
    """Closed without a merge: zero tasks, and each order ends as discarded (DESIGN 3.2)."""
    stage.open()
    await order(stage, await stage.finds())
    stage.clock.move_to(at(stage.clock.now(), minutes=5))
    stage.close()
    await stage.closed()
    assert await stage.tasks() == []
    (ended,) = await stage.orders()
    assert (ended.state, ended.outcome_reason) == (OrderState.DISCARDED, "closed")
    assert await stage.reasons("handoff") == ["not_merged"]
    assert stage.comments() == []


async def test_a_reopened_pull_request_keeps_its_orders(stage: Stage) -> None:
    """The forge's word of now decides: a late delivery of a close changes nothing."""
    stage.open()
    await order(stage, await stage.finds())
    stage.close()
    pull = stage.world.pull(stage.repo, 1).value
    stage.world.put_pull(stage.repo, replace(pull, state=PullRequestState.OPEN))
    await stage.closed()
    assert [item.state for item in await stage.orders()] == [OrderState.PENDING]
    assert await stage.reasons("handoff") == []


@pytest.mark.parametrize(
    ("author", "ordered", "tasks", "reasons"),
    [
        pytest.param("scribe[bot]", False, 0, ["bot_pull_request"] * 2, id="bot"),
        pytest.param(
            "scribe[bot]", True, 1, ["human_queue", "bot_pull_request"], id="bot-one-ordered"
        ),
        pytest.param("alice", False, 1, ["auto"] * 2, id="person"),
    ],
)
async def test_a_bots_findings_wait_for_a_person(
    stage: Stage, author: str, ordered: bool, tasks: int, reasons: list[str]
) -> None:
    """Nothing of a bot's pull request is handed off by itself; an order covers what it names."""
    stage.open(author=author)
    wanted = await stage.finds()
    await stage.finds(code="    return eval(rows)", start_line=3)
    if ordered:
        await order(stage, wanted)
    await merged(stage)
    assert len(await stage.tasks()) == tasks
    assert await stage.reasons("handoff") == reasons
    if ordered:
        rows = await stage.findings()
        assert [row.fix_task_id is not None for row in rows] == [True, False]
        (done,) = await stage.orders()
        assert (done.state, done.fix_task_id) == (OrderState.TASK, rows[0].fix_task_id)


async def test_mild_findings_stay_where_they_are(stage: Stage) -> None:
    """Below the policy's severity nothing is handed off, and the page says why, folded away."""
    stage.open()
    await stage.finds(severity=Severity.SUGGESTION)
    await merged(stage)
    assert await stage.tasks() == []
    assert await stage.reasons("handoff") == ["below_severity"]
    (said,) = stage.comments()
    assert "Nothing was handed to a fixer" in said
    assert "<details>" in said
    assert "severity is below" in said


async def test_what_the_merge_did_away_with_is_gone(stage: Stage) -> None:
    """Findings are asked about in the merged tree: a line that is not there needs no fix."""
    stage.open()
    await stage.finds()
    await stage.finds(code="    return eval(rows)", start_line=3)
    await merged(stage, **{FILE: SOURCE.replace(b"rows[0] / 0", b"0")})
    first, second = await stage.findings()
    assert (first.status, second.status) == (FindingStatus.GONE, FindingStatus.OPEN)
    assert first.fix_task_id is None
    assert await stage.reasons("handoff") == ["not_open", "auto"]


async def test_a_merge_without_findings_is_silent(stage: Stage) -> None:
    """Most merges need no words of ours."""
    stage.open()
    await stage.known()
    await merged(stage)
    assert (await stage.tasks(), stage.comments()) == ([], [])


async def test_shadow_hands_off_and_writes_nothing(make_stage: MakeStage) -> None:
    """In shadow mode nothing leaves and no task begins."""
    stage = await make_stage("mode: shadow\n")
    stage.open()
    await stage.finds()
    await merged(stage)
    assert await stage.tasks() == []
    assert (stage.reviewer.effects, stage.fixer.effects) == ([], [])


async def test_a_stopped_lineage_keeps_its_findings_for_later(stage: Stage) -> None:
    """A person's stop defers: no task, and an order stays pending for the resume."""
    stage.open()
    wanted = await stage.finds()
    await order(stage, wanted)
    lineage = await stage.lineage()
    await stage.change(type(lineage), lineage.id, state="stopped")
    await merged(stage)
    assert await stage.tasks() == []
    assert await stage.reasons("handoff") == ["stopped"]
    assert [item.state for item in await stage.orders()] == [OrderState.PENDING]


async def test_a_task_waits_for_the_file_of_another_and_is_woken(stage: Stage) -> None:
    """A file has one fix at a time; the next one begins when the first ends (DESIGN 3.2)."""
    stage.open(1)
    await stage.finds(1)
    await merged(stage)
    (first,) = await stage.tasks()
    stage.open(2)
    await stage.finds(2)
    stage.merge(2)
    await stage.queue(stage.close_request(2))
    await stage.run(CLOSING)
    _, second = await stage.tasks()
    assert (second.state, second.lease_taken_at) == (FixTaskState.WAITING, None)
    assert len(await stage.jobs(JobKind.RUN_FIX_TASK)) == 1

    await stage.run()
    fix = stage.fix_pulls()[0]
    stage.close(fix.number)
    await stage.queue(stage.close_request(fix.number))
    await stage.run(CLOSING)
    ended, woken = await stage.tasks()
    assert (ended.id, ended.state, ended.state_reason) == (
        first.id,
        FixTaskState.CLOSED,
        "closed_by_human",
    )
    assert woken.state is FixTaskState.QUEUED
    assert len(await stage.jobs(JobKind.RUN_FIX_TASK)) == 2


async def test_findings_for_a_file_that_is_waited_for_join_the_waiting_task(stage: Stage) -> None:
    """Who comes while a task waits for a file goes with it: no second one stands in line."""
    for number in (1, 2, 3):
        stage.open(number)
        await stage.finds(number)
        stage.merge(number)
        await stage.queue(stage.close_request(number))
        await stage.run(CLOSING)
    tasks = await stage.tasks()
    assert [task.state for task in tasks] == [FixTaskState.QUEUED, FixTaskState.WAITING]
    assert (await stage.findings(3))[0].fix_task_id == tasks[1].id


@pytest.mark.parametrize(
    ("by", "state", "reason"),
    [
        pytest.param("alice", FixTaskState.CLOSED, "closed_by_human", id="person"),
        pytest.param("janitor[bot]", FixTaskState.FAILED, "closed_by_machine", id="machine"),
    ],
)
async def test_a_closed_fix_ends_its_task(
    stage: Stage, by: str, state: FixTaskState, reason: str
) -> None:
    """Who closes a fix ends it; a machine's close is a failure, a person's a decision."""
    stage.open()
    await stage.finds()
    stage.merge()
    await stage.closed()
    fix = stage.fix_pulls()[0]
    stage.close(fix.number)
    await stage.closed(fix.number, by=by)
    task = await stage.task()
    assert (task.state, task.state_reason) == (state, reason)
    assert task.lease_ended_at is not None
    assert (await stage.findings())[0].status is FindingStatus.OPEN


async def test_a_merged_fix_settles_what_it_fixed(stage: Stage) -> None:
    """The source's findings are fixed once the fix is merged, and nothing follows from that."""
    stage.open()
    await stage.finds()
    stage.merge()
    await stage.closed()
    task = await stage.task()
    await stage.reviewed(task.id, fixed=True)
    fix = stage.fix_pulls()[0]
    sha = stage.merge(fix.number, files={FILE: b"def a(rows):\n    return 0\n"})
    await stage.closed(fix.number)
    task = await stage.task()
    assert task.state is FixTaskState.MERGED
    source = (await stage.findings())[0]
    assert (source.status, source.fixed_sha) == (FindingStatus.FIXED, sha)
    assert stage.comments(fix.number) == []


async def test_what_a_merged_fix_left_open_may_be_ordered_again(stage: Stage) -> None:
    """Merged while something blocks: the rest stays open for a person's order (DESIGN 3.9)."""
    stage.open()
    await stage.finds()
    stage.merge()
    await stage.closed()
    await stage.known(2)
    (mirror,) = await stage.findings(2)
    await order(stage, mirror.id)
    stage.merge(2, files={FILE: SOURCE})
    await stage.queue(stage.close_request(2))
    await stage.run(CLOSING)
    first, second = await stage.tasks()
    assert first.state is FixTaskState.MERGED
    assert (second.state, second.source_pull_request_id) == (
        FixTaskState.QUEUED,
        mirror.pull_request_id,
    )
    assert second.lineage_id == first.lineage_id


async def test_a_late_batch_plans_only_what_was_ordered(stage: Stage) -> None:
    """An order on a merged pull request is handed off at once, and nothing else with it."""
    stage.open(author="scribe[bot]")
    wanted = await stage.finds()
    await stage.finds(path="app/b.py", code="    return 1")
    await merged(stage)
    assert await stage.tasks() == []
    await order(stage, wanted)
    request = stage.close_request(delivery="again")
    batch = {**request.payload, "batch": "order:1"}
    await stage.queue(replace(request, payload=batch))
    await stage.run(CLOSING)
    task = await stage.task()
    assert (task.batch, task.paths) == ("order:1", [FILE])
    assert await stage.reasons("handoff") == ["bot_pull_request"] * 2 + ["human_queue"]
    assert len(stage.comments()) == 2


async def test_an_order_for_what_is_gone_ends_with_the_reason(stage: Stage) -> None:
    """Every order ends; one for a line that the merge did away with is refused as not open."""
    stage.open()
    await order(stage, await stage.finds())
    await merged(stage, **{FILE: b"nothing\n"})
    (ended,) = await stage.orders()
    assert (ended.state, ended.outcome_reason) == (OrderState.REFUSED, "not_open")


async def test_a_close_stops_the_review_of_that_pull_request(stage: Stage) -> None:
    """Nobody needs a review of what is closed, and it costs money."""
    stage.open()
    await stage.finds()
    subject = pull_request_subject(REPOSITORY, 1)
    await stage.queue(JobRequest(kind=JobKind.REVIEW_PULL_REQUEST, key="review:1", subject=subject))
    await merged(stage)
    assert [job.state for job in await stage.jobs(JobKind.REVIEW_PULL_REQUEST)] == [
        JobState.CANCELLED
    ]


async def test_an_order_for_an_escalated_tasks_finding_resumes_it(stage: Stage) -> None:
    """It counts as a resume of that task: no second task beside it (DESIGN 3.9)."""
    stage.open()
    wanted = await stage.finds()
    await merged(stage)
    task = await stage.task()
    await stage.change(FixTask, task.id, state=FixTaskState.ESCALATED, allowance=5)
    await order(stage, wanted)
    request = stage.close_request(delivery="again")
    await stage.queue(replace(request, payload={**request.payload, "batch": "order:1"}))
    await stage.run(CLOSING)
    task = await stage.task()
    assert (task.state, task.resumes, task.allowance) == (FixTaskState.QUEUED, 1, 7)
    (done,) = await stage.orders()
    assert (done.state, done.fix_task_id) == (OrderState.TASK, task.id)


async def test_a_dismissed_finding_is_not_handed_off(stage: Stage) -> None:
    """A person dismissed it and nobody ordered it since."""
    stage.open()
    wanted = await stage.finds()
    await stage.change(
        FindingRow, wanted, status=FindingStatus.DISMISSED, status_at=stage.clock.now()
    )
    await merged(stage)
    assert await stage.reasons("handoff") == ["not_open"]
