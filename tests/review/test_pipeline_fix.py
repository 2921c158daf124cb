"""Fix pull requests: judged by convergence, given turns, and ended when they do not converge."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.domain.jobs import JobKind
from app.domain.runs import AgentName, RunState, Trigger
from app.jobs.requests import fix_task_subject
from app.store.tables import (
    DecisionRow,
    FindingRow,
    FixTask,
    FixTaskFinding,
    Lineage,
    ReviewRun,
)
from loop_guards import FindingStatus, Origin, Severity, TaskState, Verdict
from tests.review.story import (
    BASE,
    NONSENSE,
    NOTHING,
    PERSON,
    PLANTED,
    SEARCH,
    Story,
    finding,
    findings,
    open_fix,
)
from tests.store.rows import REPOSITORY

TRIED = {**BASE, SEARCH: PLANTED + b"\n# looked at\n"}
STARTED = "check in_progress: Reviewing"
C, W, S = Severity.CRITICAL, Severity.WARNING, Severity.SUGGESTION


async def task_of(story: Story) -> FixTask:
    return (await story.tasks())[0]


async def turns(story: Story) -> list[tuple[str, bool]]:
    """The queued turns: whose, and whether they may start now."""
    jobs = await story.jobs(JobKind.RUN_FIX_TASK)
    return [(job.subject or "", job.run_at <= story.clock.now()) for job in jobs]


async def test_a_fix_that_converged_is_approved(story: Story) -> None:
    """All of the task fixed on evidence: approved by review and check; nothing more is started.

    The task's findings are in the ledger of the fix once, however often it is reviewed.
    """
    await open_fix(story, C, W, tree=TRIED)
    story.model.carried = {"F1": "fixed", "F2": "fixed"}
    await story.review(actor=None)
    assert story.page() == [
        STARTED,
        "review APPROVE []",
        "status",
        "check success: Approved: 2 fixed",
    ]
    task = await task_of(story)
    assert (task.state, task.rounds_started) == (TaskState.APPROVED, 1)
    assert await turns(story) == []
    await story.review(PERSON, trigger=Trigger.COMMAND)
    rows = await story.findings()
    assert [(row.short_id, row.origin, row.status) for row in rows] == [
        ("F1", Origin.ORIGINAL, FindingStatus.FIXED),
        ("F2", Origin.ORIGINAL, FindingStatus.FIXED),
    ]
    started = [
        ("review_start", "review", "requested"),
        ("review_start", "start", "allowed"),
        ("task", "reviewing", "round_begun"),
    ]
    approved = [
        ("verdict", "approved", "nothing_blocks"),
        ("after_round", "approve", "nothing_blocks"),
        ("task", "approved", "approved"),
    ]
    fixed = [("fixed", "fixed", "on_evidence")] * 2
    assert await story.decisions() == [*started, *fixed, *approved, *started, *approved]
    kept = [row for row in await story.rows(DecisionRow) if row.kind == "fixed"]
    assert [row.finding_id for row in kept] == [row.id for row in rows]
    assert all(row.record["trace"] and row.record["compared"]["changed"] for row in kept)


async def test_a_fix_that_blocks_gets_another_turn(story: Story) -> None:
    """Changes requested; the turn waits until the page shows why, and may begin then."""
    task_id = await open_fix(story, C, tree=TRIED)
    seen: list[timedelta] = []

    async def look() -> None:
        [job] = await story.jobs(JobKind.RUN_FIX_TASK)
        seen.append(job.run_at - story.clock.now())

    story.forge.before_review = look
    await story.review(actor=None)
    assert story.page() == [
        STARTED,
        "review REQUEST_CHANGES []",
        "status",
        "check failure: Changes requested: 1 critical",
    ]
    assert timedelta(minutes=1) < seen[0] <= timedelta(minutes=2)
    assert await turns(story) == [(fix_task_subject(task_id), True)]
    task = await task_of(story)
    assert (task.state, task.state_reason) == (TaskState.QUEUED, "findings_block")
    assert "blocks" in story.bodies[0]


@pytest.mark.parametrize(
    ("severity", "event", "state"),
    [
        pytest.param(C, "REQUEST_CHANGES", TaskState.QUEUED, id="critical"),
        pytest.param(W, "APPROVE", TaskState.APPROVED, id="warning"),
    ],
)
async def test_what_a_fix_brings_in(
    story: Story, severity: Severity, event: str, state: TaskState
) -> None:
    """An introduced critical blocks; less is said inline, recorded and in nobody's way."""
    await open_fix(story, C, tree=TRIED)
    story.model.carried = {"F1": "fixed"}
    new = finding(line=4, severity=severity, title="Brought in", category="quality")
    story.model.answers = {AgentName.GENERAL: [findings(new)]}
    await story.review(actor=None)
    assert f"review {event} [app/search.py:4]" in story.page()
    last = (await story.findings())[-1]
    assert (last.short_id, last.origin, last.status) == (
        "F2",
        Origin.INTRODUCED,
        FindingStatus.OPEN,
    )
    assert (await task_of(story)).state is state


async def test_a_fix_at_its_cap_is_escalated(story: Story) -> None:
    """The last round blocks: one comment, one label, the check; its file is free for the next.

    No turn of its own is queued; the task that waited for the file gets one.
    """
    task_id = await open_fix(story, C, tree=TRIED, rounds_started=4)
    story.policy("escalate_to: tomas\n")
    waiting = await another_task(story, TaskState.WAITING)
    await story.review(actor=None)
    assert story.page() == [
        STARTED,
        "review REQUEST_CHANGES []",
        "status",
        "comment escalation-5",
        "label mergeward:needs-human",
        "check action_required: A human is needed: 1 critical",
    ]
    [comment] = [item.body for item in story.world.pull(*story.place).comments[1:]]
    assert "@tomas" in comment
    task = await task_of(story)
    assert (task.state, task.escalation_reason) == (TaskState.ESCALATED, "cap")
    assert task.lease_ended_at is not None
    assert await turns(story) == [(fix_task_subject(waiting), True)]
    assert task_id != waiting
    run = await story.last_run()
    assert (run.verdict, run.round_number) == (Verdict.ESCALATED, 5)


async def another_task(story: Story, state: TaskState) -> int:
    """A second task for the same file."""
    async with story.store.write() as session:
        first = await session.get_one(FixTask, 1)
        task = FixTask(
            key="another",
            lineage_id=first.lineage_id,
            repository_id=REPOSITORY,
            source_pull_request_id=first.source_pull_request_id,
            target="builtin",
            paths=[SEARCH],
            state=state,
            base_ref="main",
            merge_commit_sha=first.merge_commit_sha,
            branch="mergeward/fix/2",
            allowance=5,
            created_at=story.clock.now(),
            updated_at=story.clock.now(),
        )
        session.add(task)
        await session.flush()
        return task.id


@pytest.mark.parametrize("used", ["rounds", "tokens"])
async def test_no_round_starts_beyond_the_limits(story: Story, used: str) -> None:
    """Rounds or budget used up: no model is called, and a person is asked at once."""
    before = 5 if used == "rounds" else 1
    await open_fix(story, C, tree=TRIED, rounds_started=before)
    if used == "tokens":
        async with story.store.write() as session:
            (await session.get_one(Lineage, 1)).input_tokens = 2_000_000
    reason = "cap" if used == "rounds" else "budget"
    await story.review(actor=None)
    assert story.page() == [
        f"comment escalation-{before + 1}",
        "label mergeward:needs-human",
        f"check action_required: Skipped: {reason}",
    ]
    assert story.model.calls == []
    assert await story.decisions() == [
        ("review_start", "review", "requested"),
        ("review_start", "refuse", reason),
        ("after_round", "escalate", reason),
        ("task", "escalated", "escalated"),
    ]
    task = await task_of(story)
    assert (task.state, await turns(story)) == (TaskState.ESCALATED, [])


async def test_an_approved_fix_is_not_escalated_by_a_question(story: Story) -> None:
    """Somebody asks for one more look at an approved fix without rounds: refused, no more."""
    await open_fix(story, C, tree=TRIED, rounds_started=5, state=TaskState.APPROVED)
    await story.review(PERSON, trigger=Trigger.COMMAND)
    assert story.page() == ["check action_required: Skipped: cap"]
    assert (await task_of(story)).state is TaskState.APPROVED


@pytest.mark.parametrize("state", [TaskState.DECLINED, TaskState.FAILED, TaskState.CLOSED])
async def test_a_look_at_an_ended_task_brings_nothing_back(story: Story, state: TaskState) -> None:
    """The fix pull request of an ended task is reviewed on demand; the task and its files stay
    free, and no turn follows."""
    await open_fix(story, C, tree=TRIED, state=state)
    await story.review(PERSON, trigger=Trigger.COMMAND)
    assert (await story.last_run()).verdict is Verdict.CHANGES_REQUESTED
    assert ((await task_of(story)).state, await turns(story)) == (state, [])


async def past_round(story: Story, blocking: list[int]) -> None:
    """A round of an earlier day, as the ledger holds it."""
    row = await story.row()
    async with story.store.write() as session:
        run = ReviewRun(
            pull_request_id=row.id,
            fix_task_id=1,
            head_sha="0" * 40,
            trigger=Trigger.WEBHOOK,
            state=RunState.DONE,
            verdict=Verdict.CHANGES_REQUESTED,
            blocking=blocking,
            charged_at=story.clock.now(),
            created_at=story.clock.now(),
        )
        session.add(run)


@pytest.mark.parametrize(
    ("resumes", "state"),
    [
        pytest.param(0, TaskState.ESCALATED, id="two turns changed nothing"),
        pytest.param(1, TaskState.QUEUED, id="resumed since"),
    ],
)
async def test_a_resume_clears_the_memory_of_stalls(
    story: Story, resumes: int, state: TaskState
) -> None:
    """The same blocking set for the third time is a stall; rounds before a resume do not count."""
    await open_fix(story, C, tree=TRIED, rounds_started=2, allowance=7)
    await story.review(actor=None)
    story.page()
    story.push({**TRIED, SEARCH: PLANTED + b"\n# again\n"})
    mirror = next(row for row in await story.rows(FindingRow) if row.source_finding_id)
    await past_round(story, [mirror.id])
    async with story.store.write() as session:
        (await session.get_one(FixTask, 1)).resumes = resumes
    await story.review(actor=None)
    task = await task_of(story)
    assert task.state is state
    assert task.escalation_reason == ("stall" if state is TaskState.ESCALATED else None)


async def test_a_fix_that_is_never_wholly_read_is_escalated(story: Story) -> None:
    """Nothing blocks, but a reviewer gave no answer: one more look, then a person is asked."""
    tree = {**BASE, SEARCH: PLANTED, "app/auth/login.py": PLANTED}
    await open_fix(story, C, tree=tree)
    story.model.carried = {"F1": "fixed"}
    story.model.answers = {AgentName.SECURITY: [NONSENSE], AgentName.CODE_QUALITY: [NOTHING]}
    await story.review(actor=None)
    rounds = [(run.round_number, run.reason) for run in await story.runs()]
    assert rounds == [(1, "look_again"), (2, "coverage")]
    assert [call for call in story.page() if call.startswith(("check", "review"))] == [
        STARTED,
        "review REQUEST_CHANGES []",
        "check action_required: Changes requested: 1 fixed",
        STARTED,
        "review REQUEST_CHANGES []",
        "check action_required: A human is needed: no findings",
    ]
    assert "fixer gets another turn" not in story.bodies[0]
    assert (await task_of(story)).escalation_reason == "coverage"
    assert await turns(story) == []


async def test_a_finding_that_comes_back_blocks_again(story: Story) -> None:
    """Fixed in one round and there again in the next: the task's finding, not a new one."""
    await open_fix(story, W, tree={**BASE, SEARCH: b"def search(q):\n    return None\n"})
    story.model.carried = {"F1": "fixed"}
    await story.review(actor=None)
    assert (await task_of(story)).state is TaskState.APPROVED
    story.push(TRIED)
    again = finding(severity="warning", title="Old warning")
    story.model.answers = {AgentName.GENERAL: [findings(again)]}
    await story.review(actor=None)
    [row] = await story.findings()
    assert (row.short_id, row.status, row.origin) == ("F1", FindingStatus.OPEN, Origin.ORIGINAL)
    run = await story.last_run()
    assert (run.verdict, run.blocking) == (Verdict.CHANGES_REQUESTED, [row.id])
    assert (await task_of(story)).state is TaskState.QUEUED


async def test_a_withdrawn_finding_blocks_no_more(story: Story) -> None:
    """A person took one of two findings off the task: the other alone decides."""
    await open_fix(story, C, W, tree=TRIED)
    await story.review(actor=None)
    async with story.store.write() as session:
        found = await story.rows(FindingRow)
        link = await session.get_one(FixTaskFinding, (1, found[1].id))
        link.left_at = story.clock.now()
    story.push({**BASE, SEARCH: b"def search(q):\n    return None\n"})
    story.model.carried = {"F1": "fixed"}
    await story.review(actor=None)
    run = await story.last_run()
    assert (run.verdict, run.blocking) == (Verdict.APPROVED, [])
