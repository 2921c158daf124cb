"""What a merge makes of its findings: how many tasks, of what, and why not (app/handoff)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlmodel import col, select

from app.domain.effects import Comment
from app.domain.jobs import JobKind, JobState
from app.domain.markers import Marker, MarkerKind
from app.domain.tasks import FixTaskState, OrderState
from app.handoff.flow import close_pull_request
from app.jobs.context import JobContext
from app.jobs.dispatch import InProcessDispatcher
from app.jobs.requests import JobRequest, pull_request_subject
from app.jobs.worker import Story, Worker, WorkerOptions
from app.store.tables import DecisionRow, FixTask, Order, PullRequestRow
from loop_guards import FindingStatus, Origin, Severity
from tests.fixer.crashes import Died, MortalStore, carry_out
from tests.git.repos import git
from tests.handoff.fixtures import MakeStage, in_module_loop
from tests.handoff.stage import BAD, FILE, OTHER, SOURCE, Stage
from tests.store.rows import REPOSITORY

pytestmark = in_module_loop

CLOSING = JobKind.CLOSE_PULL_REQUEST
B: dict[str, Any] = {"path": "app/b.py", "code": "    return 1"}
C: dict[str, Any] = {"path": "app/c.py", "code": "    return 2"}
FILES = {FILE: SOURCE, "app/b.py": OTHER, "app/c.py": b"def c():\n    return 2\n"}


async def plan(stage: Stage, number: int = 1, files: dict[str, bytes] | None = None) -> None:
    """The merge and its plan; turns are left queued."""
    stage.merge(number, files=FILES if files is None else files)
    await stage.queue(stage.close_request(number))
    await stage.run(CLOSING)


async def order(stage: Stage, finding_id: int, **difference: Any) -> int:
    values = {
        "finding_id": finding_id,
        "ordered_by_id": 1,
        "ordered_by_login": "alice",
        "ordered_at": stage.clock.now(),
        "source": "comment:1",
    }
    row = Order(**{**values, **difference})
    async with stage.store.write() as session:
        session.add(row)
    return row.id


async def covered(stage: Stage, number: int = 1) -> list[int | None]:
    return [row.fix_task_id for row in await stage.findings(number)]


async def test_two_files_are_two_tasks(stage: Stage) -> None:
    """One fix per file: two files are two, each with its own turn."""
    stage.open()
    await stage.finds()
    await stage.finds(**B)
    await plan(stage)
    first, second = await stage.tasks()
    assert [first.paths, second.paths] == [[FILE], ["app/b.py"]]
    assert await covered(stage) == [first.id, second.id]
    assert first.branch != second.branch
    assert len(await stage.jobs(JobKind.RUN_FIX_TASK)) == 2


async def test_files_that_hang_together_are_one_task(stage: Stage) -> None:
    """A finding whose fix needs another file takes that file's findings with it."""
    stage.open()
    await stage.finds(also=["app/b.py"])
    await stage.finds(**B)
    await stage.finds(**C)
    await plan(stage)
    joined, alone = await stage.tasks()
    assert (joined.paths, alone.paths) == ([FILE, "app/b.py"], ["app/c.py"])
    assert await covered(stage) == [joined.id, joined.id, alone.id]


@pytest.mark.parametrize(
    ("finding", "policy", "reason"),
    [
        pytest.param({}, "handoff: {mode: manual}\n", "mode_manual", id="manual"),
        pytest.param({}, "handoff: {mode: 'off'}\n", "mode_off", id="off"),
        pytest.param({}, "limits: {max_fix_tasks: 0}\n", "budget", id="no-tasks-allowed"),
        pytest.param({"path": None, "code": ""}, "", "no_path", id="no-path"),
        pytest.param({"origin": Origin.PRE_EXISTING}, "", "pre_existing", id="older"),
        pytest.param({"status": FindingStatus.ACKNOWLEDGED}, "", "acknowledged", id="accepted"),
        pytest.param({"status": FindingStatus.FIXED}, "", "not_open", id="fixed"),
        pytest.param(
            {"severity": Severity.WARNING},
            "handoff: {minimum_severity: critical}\n",
            "below_severity",
            id="below-the-policys-severity",
        ),
    ],
)
async def test_nothing_is_handed_off_and_the_page_says_why(
    make_stage: MakeStage, finding: dict[str, Any], policy: str, reason: str
) -> None:
    """Each refusal of the plan is one decision with its trace, and half a sentence."""
    stage = await make_stage(policy)
    stage.open()
    await stage.finds(**finding)
    await plan(stage)
    assert await stage.tasks() == []
    async with stage.store.read() as session:
        (decision,) = (await session.exec(select(DecisionRow))).all()
    assert (decision.kind, decision.outcome, decision.reason) == ("handoff", "no", reason)
    assert decision.record["trace"][-1][1] == reason
    assert decision.record["compared"]["base"] == "main"
    (said,) = stage.comments()
    assert said.startswith("Nothing was handed to a fixer.")
    assert "**F1** Division by zero: " in said


async def test_an_order_overrules_the_policy(make_stage: MakeStage) -> None:
    """Manual mode waits for persons; what they order is handed off, at any severity."""
    stage = await make_stage("handoff: {mode: manual}\n")
    stage.open()
    wanted = await stage.finds(severity=Severity.SUGGESTION)
    await stage.finds(**B)
    order_id = await order(stage, wanted)
    await plan(stage)
    task = await stage.task()
    assert (task.paths, task.batch) == ([FILE], "merge")
    assert await covered(stage) == [task.id, None]
    (done,) = await stage.orders()
    assert (done.id, done.state, done.fix_task_id) == (order_id, OrderState.TASK, task.id)


async def test_a_merge_into_another_branch_is_left_alone(stage: Stage) -> None:
    """Only the default branch, and those that the policy names, get fixes by themselves."""
    pull = stage.open()
    stage.world.put_pull(stage.repo, replace(pull, base_ref="release-1"))
    await stage.finds()
    await plan(stage)
    assert await stage.tasks() == []
    assert await stage.reasons("handoff") == ["other_base"]


async def test_a_base_that_the_policy_names_gets_fixes(make_stage: MakeStage) -> None:
    """They are meant for that branch, not for the default one."""
    stage = await make_stage("handoff: {bases: [release-1]}\n")
    pull = stage.open()
    stage.world.put_pull(stage.repo, replace(pull, base_ref="release-1"))
    await stage.finds()
    await plan(stage)
    assert (await stage.task()).base_ref == "release-1"


async def test_a_merge_has_room_for_so_many_tasks(make_stage: MakeStage) -> None:
    """The worst come first; what finds no room is said, not lost."""
    stage = await make_stage("limits: {max_fix_tasks: 1}\n")
    stage.open()
    await stage.finds(severity=Severity.WARNING)
    await stage.finds(**B)
    await plan(stage)
    assert (await stage.task()).paths == ["app/b.py"]
    assert await stage.reasons("handoff") == ["budget", "auto"]
    (said,) = stage.comments()
    assert "F2 in `app/b.py`" in said
    assert "Not handed off: 1" in said


async def test_a_path_gets_so_many_automatic_tasks_a_week(make_stage: MakeStage) -> None:
    """Whoever the authors seem to be: the third fix of one file in a week waits for a person."""
    stage = await make_stage("limits: {path_tasks: 2}\n")
    for number in (1, 2, 3):
        stage.open(number)
        await stage.finds(number)
        await plan(stage, number)
        for task in await stage.tasks():
            await stage.change(FixTask, task.id, state=FixTaskState.DECLINED)
    assert len(await stage.tasks()) == 2
    assert await stage.reasons("handoff") == ["auto", "auto", "budget"]
    stage.clock.move_to(stage.clock.now() + timedelta(days=8))
    stage.open(4)
    await stage.finds(4)
    await plan(stage, 4)
    assert len(await stage.tasks()) == 3


async def test_a_squash_is_asked_by_its_tree(stage: Stage) -> None:
    """What was merged decides, whatever the commits were: one that fixed a line leaves its finding
    gone, and it is no task's."""
    stage.open()
    await stage.finds()
    await stage.finds(code="    return eval(rows)", start_line=3)
    fixed = SOURCE.replace(BAD.encode(), b"return 0")
    await plan(stage, files={FILE: fixed})
    parents = git("rev-list", "--parents", "-1", "main", cwd=stage.git.path).decode().split()
    assert len(parents) == 2
    first, second = await stage.findings()
    assert (first.status, first.status_reason) == (FindingStatus.GONE, "not_in_merged_tree")
    assert (first.fix_task_id, second.fix_task_id) == (None, (await stage.task()).id)


async def test_a_renamed_file_has_no_findings(stage: Stage) -> None:
    """The path is not in the merged tree: nobody is sent to a file that is not there."""
    stage.open()
    await stage.finds()
    await plan(stage, files={"app/moved.py": SOURCE})
    assert [row.status for row in await stage.findings()] == [FindingStatus.GONE]
    assert await stage.tasks() == []


async def test_an_order_after_the_end_is_kept(stage: Stage) -> None:
    """Only what was ordered before the pull request closed ends with it (DESIGN 3.2)."""
    stage.open()
    first, second = await stage.finds(), await stage.finds(**B)
    await order(stage, first)
    await order(stage, second, ordered_at=stage.clock.now() + timedelta(minutes=9))
    stage.clock.move_to(stage.clock.now() + timedelta(minutes=5))
    stage.close()
    await stage.closed()
    assert [item.state for item in await stage.orders()] == [
        OrderState.DISCARDED,
        OrderState.PENDING,
    ]


async def test_an_end_without_a_merge_is_noted_once_each_time(stage: Stage) -> None:
    """Doubled deliveries note nothing again; closed, reopened and closed anew is another end."""
    stage.open()
    await stage.finds()
    stage.close()
    await stage.closed(delivery="d1")
    await stage.closed(delivery="d2")
    assert await stage.reasons("handoff") == ["not_merged"]
    stage.clock.move_to(stage.clock.now() + timedelta(minutes=5))
    stage.close()
    await stage.closed(delivery="d3")
    assert await stage.reasons("handoff") == ["not_merged"] * 2


@pytest.mark.parametrize("late", [False, True], ids=["before-commit", "after-commit"])
@pytest.mark.parametrize("at", range(1, 5))
async def test_a_death_at_any_write_of_the_first_plan(stage: Stage, at: int, late: bool) -> None:
    """Killed at any write: one task, one job, one comment, each decision once."""
    stage.open()
    await stage.finds()
    stage.merge()
    await stage.queue(stage.close_request())
    story = partial(close_pull_request, services=stage.handoff)
    mortal = MortalStore(stage.store, at, late=late)
    with pytest.raises(Died):
        await carry_out(stage, story, mortal)
    await stage.run(CLOSING)
    assert (len(await stage.tasks()), len(stage.comments())) == (1, 1)
    assert await stage.reasons("handoff") == ["auto"]
    assert len(await stage.jobs(JobKind.RUN_FIX_TASK)) == 1


async def test_a_running_review_is_stopped(stage: Stage) -> None:
    """A close runs beside the review of its pull request, and ends it."""
    stage.open()
    await stage.finds()
    stage.merge()
    started = asyncio.Event()

    async def review(job: JobContext) -> None:
        started.set()
        await asyncio.sleep(60)

    subject = pull_request_subject(REPOSITORY, 1)
    request = JobRequest(
        kind=JobKind.REVIEW_PULL_REQUEST, key="review:1", subject=subject, lane=subject
    )
    await stage.queue(request)
    stories: dict[JobKind, Story] = {
        JobKind.REVIEW_PULL_REQUEST: review,
        CLOSING: partial(close_pull_request, services=stage.handoff),
    }
    worker = Worker(
        stage.store,
        stories,
        clock=stage.clock,
        wakeups=InProcessDispatcher(),
        options=WorkerOptions(heartbeat=0.05, poll=0.05, grace=0.1),
    )
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(started.wait(), 5)
    await stage.queue(stage.close_request())
    async with asyncio.timeout(10):
        while (await stage.jobs(JobKind.REVIEW_PULL_REQUEST))[0].state is JobState.RUNNING:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        while (await stage.jobs(CLOSING))[0].state.is_live:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    worker.stop()
    await running
    (ended,) = await stage.jobs(JobKind.REVIEW_PULL_REQUEST)
    assert (ended.state, ended.cancel_reason) == (JobState.CANCELLED, "closed")
    assert len(await stage.tasks()) == 1


async def test_what_is_said_is_one_comment_and_nothing_else(stage: Stage) -> None:
    """The whole list of effects of a merge."""
    stage.open()
    await stage.finds(title="Use @admin, fixes #3")
    await stage.finds(severity=Severity.SUGGESTION, title="Rename `x`")
    await plan(stage)
    async with stage.store.read() as session:
        row = (
            await session.exec(select(PullRequestRow).where(col(PullRequestRow.number) == 1))
        ).one()
    (effect,) = stage.reviewer.effects
    assert isinstance(effect, Comment)
    assert effect.marker == Marker(MarkerKind.COMMENT, f"handoff:{row.id}")
    assert effect.body.splitlines() == [
        "Handed to the fixer:",
        "- F1 in `app/a.py`",
        "",
        "<details><summary>Not handed off: 1</summary>",
        "",
        "- **F2** Rename `x`: its severity is below what the policy hands off",
        "",
        "</details>",
    ]
    assert stage.fixer.effects == []


async def test_a_fix_known_by_its_row_needs_no_login(stage: Stage) -> None:
    """Once linked, a fix pull request is its task's, also where our logins are not configured."""
    stage.open()
    await stage.finds()
    stage.merge()
    await stage.closed()
    fix = stage.fix_pulls()[0]
    sha = stage.merge(fix.number)
    services = replace(stage.handoff, our_logins=frozenset())
    await stage.queue(stage.close_request(fix.number))
    await carry_out(stage, partial(close_pull_request, services=services), stage.store)
    task = await stage.task()
    assert (task.state, task.state_reason) == (FixTaskState.MERGED, "fix_merged")
    assert stage.world.pull(stage.repo, fix.number).value.merge_commit_sha == sha


async def test_a_branch_of_that_name_by_a_person_is_no_fix(stage: Stage) -> None:
    """Only our fixer's pull request ends a task; anybody can name a branch like that."""
    stage.open()
    await stage.finds()
    stage.merge()
    await stage.queue(stage.close_request())
    await stage.run(CLOSING)
    task = await stage.task()
    pull = stage.open(9, author="mallory")
    stage.world.put_pull(stage.repo, replace(pull, head_ref=task.branch or ""))
    stage.close(9)
    await stage.queue(stage.close_request(9))
    await stage.run(CLOSING)
    assert (await stage.task()).state is FixTaskState.QUEUED


async def test_a_merged_fix_settles_also_for_a_task_that_ended(stage: Stage) -> None:
    """A person merges what a failed task had proposed: what it fixed is fixed all the same."""
    stage.open()
    await stage.finds()
    stage.merge()
    await stage.closed()
    task = await stage.task()
    await stage.reviewed(task.id, fixed=True)
    await stage.change(FixTask, task.id, state=FixTaskState.FAILED)
    stage.merge(2, files={FILE: b"def a(rows):\n    return 0\n"})
    await stage.closed(2)
    assert (await stage.task()).state is FixTaskState.FAILED
    assert [row.status for row in await stage.findings()] == [FindingStatus.FIXED]
