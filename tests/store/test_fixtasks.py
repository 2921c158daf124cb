"""Fix tasks in the ledger: made once, leased one at a time, woken, resumed (store/fixtasks.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.permits import ResumePermit
from app.domain.tasks import LIVE_TASK_STATES, FixTaskState, OrderState
from app.jobs.turns import turn_request
from app.store.commands import ensure_lineage
from app.store.findings import number_findings
from app.store.fixtasks import (
    MergeContext,
    create_task,
    link_fix_pull_request,
    move,
    resume_task,
    settle_sources,
    task_of_branch,
    wake_waiting,
)
from app.store.queries import task_findings
from app.store.session import Store
from app.store.tables import (
    DecisionRow,
    FindingRow,
    FixTask,
    FixTaskFinding,
    Order,
    PullRequestRow,
)
from loop_guards import (
    FindingStatus,
    HandoffFinding,
    HandoffMode,
    HumanOrder,
    Limits,
    MergeFacts,
    Origin,
    Severity,
    TaskEvent,
    TaskPlan,
    WaitingTask,
    plan_merged,
)
from tests.domain.decisions import resume_order
from tests.store.rows import NOW, REPOSITORY, add_pull_request, add_repository, later

MERGE = "c" * 40


def plans(
    *findings: FindingRow,
    ordered: Iterable[int] = (),
    batch: str = "merge",
    waiting: tuple[WaitingTask, ...] = (),
    leased: frozenset[str] = frozenset(),
) -> tuple[TaskPlan, ...]:
    """What the guards plan for these findings: nobody else can make a plan."""
    asked = [
        HandoffFinding(
            id=row.id,
            path=row.path,
            severity=row.severity,
            origin=row.origin,
            status=row.status,
            also=tuple(row.also),
            order=HumanOrder(row.id, NOW) if row.id in ordered else None,
        )
        for row in findings
    ]
    facts = MergeFacts(
        now=NOW,
        repository=REPOSITORY,
        merge_commit=MERGE,
        base="main",
        default_branch="main",
        mode=HandoffMode.AUTO,
        author_is_bot=False,
        is_fix_pr=False,
        merged=True,
        leased_paths=leased,
        waiting_tasks=waiting,
    )
    return plan_merged(asked, facts, Limits(), batch=batch).tasks


async def source(session: AsyncSession, number: int = 7) -> MergeContext:
    row = await add_pull_request(session, number=number)
    lineage = await ensure_lineage(session, row, now=NOW)
    return MergeContext(row, lineage, MERGE, "main", allowance=5)


async def found(session: AsyncSession, row: PullRequestRow, **difference: Any) -> FindingRow:
    values: dict[str, Any] = {
        "path": "a.py",
        "start_line": 1,
        "severity": Severity.WARNING,
        "category": "bug",
        "title": "t",
        "body": "b",
        "origin": Origin.ORIGINAL,
        "status": FindingStatus.OPEN,
        "first_seen_sha": "a1",
        "last_seen_sha": "a1",
        "created_at": NOW,
        "updated_at": NOW,
    }
    finding = FindingRow(**{**values, **difference}, pull_request_id=row.id, number=0)
    await number_findings(session, row.id, [finding])
    return finding


async def made(session: AsyncSession, plan: TaskPlan, context: MergeContext) -> FixTask:
    task = await create_task(session, plan, context, now=NOW)
    assert task is not None
    return task


async def test_a_task_holds_its_findings_and_its_files(store: Store) -> None:
    """Made with its lease, its branch and the severities of that moment, frozen."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        first = await found(session, context.source)
        second = await found(session, context.source, severity=Severity.SUGGESTION)
        (plan,) = plans(first, second, ordered=[second.id])
        task = await made(session, plan, context)
        second.severity = Severity.CRITICAL
        links = [link for link, _ in await task_findings(session, task.id)]
    assert (task.state, task.paths, task.allowance) == (FixTaskState.QUEUED, ["a.py"], 5)
    assert (task.lease_taken_at, task.branch) == (NOW, f"mergeward/fix/{task.id}")
    assert [(link.severity_at_handoff, link.ordered) for link in links] == [
        (Severity.WARNING, False),
        (Severity.SUGGESTION, True),
    ]
    assert second.severity_at_handoff is Severity.SUGGESTION


async def test_a_plan_is_carried_out_once(store: Store) -> None:
    """A second task with the same key is not made."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        (plan,) = plans(await found(session, context.source))
        assert await create_task(session, plan, context, now=NOW) is not None
        assert await create_task(session, plan, context, now=NOW) is None
        assert len((await session.exec(select(FixTask))).all()) == 1


async def test_a_plan_that_is_older_than_a_lease_waits(store: Store) -> None:
    """The plan saw the file free; who holds it now is waited for all the same."""
    async with store.write() as session:
        await add_repository(session)
        first, second = await source(session, 7), await source(session, 8)
        (plan,) = plans(await found(session, first.source))
        await made(session, plan, first)
        (plan,) = plans(await found(session, second.source), batch="order:1")
        assert not plan.waiting
        task = await made(session, plan, second)
    assert (task.state, task.lease_taken_at) == (FixTaskState.WAITING, None)


@pytest.mark.parametrize(
    "state",
    [FixTaskState.WAITING, FixTaskState.QUEUED, FixTaskState.ESCALATED, FixTaskState.WITHDRAWN],
)
async def test_who_joins_finds_the_task_waiting_or_makes_another(
    store: Store, state: FixTaskState
) -> None:
    """A task that began (or ended) since the plan was made takes nobody in."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        (plan,) = plans(await found(session, context.source), leased=frozenset({"a.py"}))
        waiting = await made(session, plan, context)
        waits = (WaitingTask(waiting.id, "builtin", ("a.py",)),)
        late = await found(session, context.source, also=["b.py"])
        (plan,) = plans(late, ordered=[late.id], batch="order:1", waiting=waits)
        assert plan.joins == waiting.id
        waiting.state = state
        await session.flush()
        task = await made(session, plan, context)
    joined = state is FixTaskState.WAITING
    assert (task.id == waiting.id) is joined
    assert late.fix_task_id == task.id
    assert waiting.paths == (["a.py", "b.py"] if joined else ["a.py"])
    assert task.state is FixTaskState.WAITING


async def test_nobody_joins_a_fix_that_was_proposed(store: Store) -> None:
    """It waits again after a resume; its pull request tells what it is about."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        (plan,) = plans(await found(session, context.source), leased=frozenset({"a.py"}))
        waiting = await made(session, plan, context)
        fix = await add_pull_request(session, number=8, head_ref=waiting.branch)
        await link_fix_pull_request(session, waiting, fix, now=NOW)
        late = await found(session, context.source)
        waits = (WaitingTask(waiting.id, "builtin", ("a.py",)),)
        (plan,) = plans(late, ordered=[late.id], batch="order:1", waiting=waits)
        task = await made(session, plan, context)
    assert task.id != waiting.id
    assert task.state is FixTaskState.WAITING


async def test_a_finding_may_come_back_to_a_waiting_task(store: Store) -> None:
    """It left (withdrawn), and is ordered again: one link, live again."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        row = await found(session, context.source)
        (plan,) = plans(row, leased=frozenset({"a.py"}))
        task = await made(session, plan, context)
        link = await session.get_one(FixTaskFinding, (task.id, row.id))
        link.left_at = later(1)
        waits = (WaitingTask(task.id, "builtin", ("a.py",)),)
        (plan,) = plans(row, ordered=[row.id], batch="order:1", waiting=waits)
        await made(session, plan, context)
        links = [link for link, _ in await task_findings(session, task.id)]
    assert [(link.finding_id, link.ordered) for link in links] == [(row.id, True)]


async def test_an_order_ends_with_the_task_that_answers_it(store: Store) -> None:
    """Only the orders that wait, and only those for this task's findings."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        row, other = await found(session, context.source), await found(session, context.source)
        orders = [
            Order(
                finding_id=finding,
                ordered_by_id=1,
                ordered_by_login="alice",
                ordered_at=NOW,
                source=name,
                state=state,
            )
            for finding, name, state in (
                (row.id, "comment:1", OrderState.REFUSED),
                (row.id, "comment:2", OrderState.PENDING),
                (other.id, "comment:2", OrderState.PENDING),
            )
        ]
        session.add_all(orders)
        await session.flush()
        (plan,) = plans(row, ordered=[row.id])
        task = await made(session, plan, context)
        for order in orders:
            await session.refresh(order)
    assert [(order.state, order.fix_task_id) for order in orders] == [
        (OrderState.REFUSED, None),
        (OrderState.TASK, task.id),
        (OrderState.PENDING, None),
    ]


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (TaskEvent.ESCALATE, FixTaskState.ESCALATED),
        (TaskEvent.PULL_MERGED, FixTaskState.MERGED),
        (TaskEvent.EMPTIED_BY_HUMAN, FixTaskState.WITHDRAWN),
    ],
)
async def test_the_end_of_a_task_wakes_who_waits(
    store: Store, event: TaskEvent, state: FixTaskState
) -> None:
    """Every end and the escalation free the files; the oldest that waits gets all it needs."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        tasks = []
        for number, paths in enumerate((["a.py"], ["a.py", "b.py"], ["b.py"], ["a.py"])):
            row = await found(session, context.source, path=paths[0], also=paths[1:])
            (plan,) = plans(row, batch=f"order:{number}", leased=frozenset(paths[:number]))
            tasks.append(await made(session, plan, context))
        moved = await move(session, tasks[0], event, reason="over", now=later(9))
        kept = (await session.exec(select(DecisionRow).order_by(col(DecisionRow.id)))).all()
    assert [task.id for task in moved.woken] == [tasks[1].id]
    assert [(row.kind, row.fix_task_id, row.outcome, row.reason) for row in kept] == [
        ("task", tasks[0].id, str(state), str(moved.decision.reason)),
        ("task", tasks[1].id, "queued", "lease_taken"),
    ]
    assert tasks[0].state is state
    assert (tasks[1].state, tasks[1].lease_taken_at) == (FixTaskState.QUEUED, later(9))
    assert [task.state for task in tasks[2:]] == [FixTaskState.WAITING] * 2
    assert (tasks[0].lease_ended_at, tasks[0].state_reason) == (later(9), "over")
    assert (tasks[0].finished_at is None) is (state in LIVE_TASK_STATES)


async def test_other_bases_and_repositories_do_not_wait(store: Store) -> None:
    """A lease is on one path of one branch of one repository."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        (plan,) = plans(await found(session, context.source))
        await made(session, plan, context)
        other = MergeContext(context.source, context.lineage, MERGE, "release", 5)
        (plan,) = plans(await found(session, context.source), batch="order:2")
        assert (await made(session, plan, other)).state is FixTaskState.QUEUED
        assert await wake_waiting(session, REPOSITORY, "main", now=NOW) == []


@pytest.mark.parametrize("busy", [False, True], ids=["free", "busy"])
async def test_a_resume_takes_the_lease_again_or_waits(store: Store, busy: bool) -> None:
    """More rounds, the marks of the escalation gone, and no two tasks on one file."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        (plan,) = plans(await found(session, context.source))
        task = await made(session, plan, context)
        task.escalation_reason, task.escalated_at = "cap", NOW
        before = turn_request(task, None)
        await move(session, task, TaskEvent.ESCALATE, reason="cap", now=NOW)
        if busy:
            (plan,) = plans(await found(session, context.source), batch="order:3")
            await made(session, plan, context)
        permit = ResumePermit(resume_order())
        assert await resume_task(session, task, permit, 2, now=later(5)) is not busy
        task = await session.get_one(FixTask, task.id)
    assert task.state is (FixTaskState.WAITING if busy else FixTaskState.QUEUED)
    # The job that escalated may still be ending: the resumed turn is not taken for it.
    assert turn_request(task, None).key != before.key
    assert (task.allowance, task.resumes, task.escalation_reason) == (7, 1, None)
    assert (task.lease_taken_at, task.lease_ended_at) == (None if busy else later(5), None)


async def test_a_task_is_resumed_once(store: Store) -> None:
    """Two orders for an escalated task are one resume: the second finds it at work."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        (plan,) = plans(await found(session, context.source))
        task = await made(session, plan, context)
        await move(session, task, TaskEvent.ESCALATE, reason="cap", now=NOW)
        permit = ResumePermit(resume_order())
        resumed = [await resume_task(session, task, permit, 2, now=later(5)) for _ in range(2)]
    assert (resumed, task.resumes, task.allowance) == ([True, False], 1, 7)


async def test_what_means_nothing_to_a_task_leaves_it_alone(store: Store) -> None:
    """A late word of a turn that is over is kept as a decision, and changes no row."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        (plan,) = plans(await found(session, context.source))
        task = await made(session, plan, context)
        await move(session, task, TaskEvent.PULL_CLOSED_BY_HUMAN, now=later(1))
        moved = await move(session, task, TaskEvent.TURN_DONE, reason="pushed", now=later(2))
        kept = (await session.exec(select(DecisionRow.reason))).all()
    assert (moved.decision.moved, moved.woken) == (False, ())
    assert (task.state, task.state_reason) == (FixTaskState.CLOSED, "closed_by_human")
    assert (task.finished_at, task.updated_at) == (later(1), later(1))
    assert kept == ["closed_by_human", "task_over"]


@pytest.mark.parametrize(
    "reason", [None, "nothing_changed"], ids=["without a word", "with a new word"]
)
async def test_a_task_that_stays_keeps_its_reason(store: Store, reason: str | None) -> None:
    """The round of an empty turn still reads that the turn was empty."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        (plan,) = plans(await found(session, context.source))
        task = await made(session, plan, context)
        fix = await add_pull_request(session, number=8, head_ref=task.branch)
        await link_fix_pull_request(session, task, fix, now=NOW)
        await move(session, task, TaskEvent.TURN_BEGUN, now=NOW)
        await move(session, task, TaskEvent.TURN_DONE, reason="pushed", now=NOW)
        await move(session, task, TaskEvent.FIRST_CALL, reason=reason, now=NOW)
    assert (task.state, task.state_reason) == (FixTaskState.REVIEWING, reason or "pushed")


@pytest.mark.parametrize("again", [False, True], ids=["alone", "ordered again"])
@pytest.mark.parametrize("left", [False, True], ids=["its own", "left it"])
async def test_a_closed_task_is_superseded_by_a_newer_one(
    store: Store, again: bool, left: bool
) -> None:
    """A person reopens its pull request: it goes on unless a finding has another live task."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        row = await found(session, context.source)
        (plan,) = plans(row)
        task = await made(session, plan, context)
        await move(session, task, TaskEvent.PULL_CLOSED_BY_HUMAN, now=NOW)
        if again:
            (plan,) = plans(row, ordered=[row.id], batch="order:1")
            newer = await made(session, plan, context)
            newer.paths = ["elsewhere.py"]
        if left:
            (await session.get_one(FixTaskFinding, (task.id, row.id))).left_at = NOW
        await session.flush()
        moved = await move(session, task, TaskEvent.PULL_REOPENED_BY_HUMAN, now=later(3))
    superseded = again and not left
    assert str(moved.decision.reason) == ("superseded" if superseded else "resumed")
    assert task.state is (FixTaskState.CLOSED if superseded else FixTaskState.QUEUED)
    assert (task.finished_at is None) is not superseded
    assert task.lease_taken_at == (NOW if superseded else later(3))


async def test_a_fix_pull_request_mirrors_the_findings_once(store: Store) -> None:
    """Whoever links first does it: findings are copied with their frozen severity, once."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        row = await found(session, context.source, also=["b.py"], code="x = 1")
        gone = await found(session, context.source)
        (plan,) = plans(row, gone)
        task = await made(session, plan, context)
        row.severity = Severity.SUGGESTION
        link = await session.get_one(FixTaskFinding, (task.id, gone.id))
        link.left_at = NOW
        fix = await add_pull_request(session, number=8, head_ref=task.branch)
        for _ in range(2):
            await link_fix_pull_request(session, task, fix, now=later(3))
        mirrors = (
            await session.exec(select(FindingRow).where(FindingRow.pull_request_id == fix.id))
        ).all()
    (mirror,) = mirrors
    assert (mirror.source_finding_id, mirror.short_id, mirror.path) == (row.id, "F1", "a.py")
    assert (mirror.severity_at_handoff, mirror.also, mirror.code) == (
        Severity.WARNING,
        ["b.py"],
        "x = 1",
    )
    assert (fix.is_fix_pr, fix.fix_task_id, fix.lineage_id) == (True, task.id, task.lineage_id)
    assert task.fix_pull_request_id == fix.id


async def test_a_merged_fix_settles_only_what_it_fixed(store: Store) -> None:
    """What the reviewer never called fixed stays open on the source pull request."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        rows = [await found(session, context.source) for _ in range(2)]
        (plan,) = plans(*rows)
        task = await made(session, plan, context)
        await settle_sources(session, task, fix_sha="f", now=later(1))
        assert [row.status for row in rows] == [FindingStatus.OPEN] * 2
        fix = await add_pull_request(session, number=8, head_ref=task.branch)
        await link_fix_pull_request(session, task, fix, now=later(3))
        mirror = (
            await session.exec(
                select(FindingRow).where(col(FindingRow.source_finding_id) == rows[0].id)
            )
        ).one()
        mirror.status = FindingStatus.FIXED
        await session.flush()
        await settle_sources(session, task, fix_sha="f", now=later(4))
    assert [(row.status, row.fixed_sha) for row in rows] == [
        (FindingStatus.FIXED, "f"),
        (FindingStatus.OPEN, None),
    ]


@pytest.mark.parametrize(
    ("branch", "known"),
    [("mergeward/fix/1", True), ("mergeward/fix/99", False), ("topic", False), ("", False)],
)
async def test_a_task_is_known_by_its_branch(store: Store, branch: str, known: bool) -> None:
    """Only within its own repository, and only by the whole name."""
    async with store.write() as session:
        await add_repository(session)
        context = await source(session)
        (plan,) = plans(await found(session, context.source))
        task = await made(session, plan, context)
        task.branch = "mergeward/fix/1"
        await session.flush()
        assert (await task_of_branch(session, REPOSITORY, branch) == task) is known
        assert await task_of_branch(session, REPOSITORY + 1, branch) is None
