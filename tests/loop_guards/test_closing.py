"""What the end of a pull request causes: discarded orders, or tasks. DESIGN §3.2."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop_guards import (
    ClosePlan,
    FindingStatus,
    HandoffDecision,
    HandoffFinding,
    HandoffMode,
    HandoffReason,
    HumanOrder,
    Limits,
    MergeFacts,
    Origin,
    RefusedOrder,
    Severity,
    TaskPlan,
    TaskState,
    WaitingTask,
    plan_merged,
    plan_unmerged,
)
from tests.loop_guards.factories import (
    ANY_LIMITS,
    LIMITS,
    NOW,
    PATHS,
    PATIENT,
    anything,
    finding,
    merge,
    order,
)


def plan(*findings: HandoffFinding, limits: Limits = LIMITS, **of_merge: Any) -> ClosePlan:
    return plan_merged(findings, merge(**of_merge), limits)


def groups(*findings: HandoffFinding, **of_merge: Any) -> list[tuple[str, tuple[int, ...]]]:
    """Smallest file and findings of each planned task."""
    return [(task.paths[0], task.finding_ids) for task in plan(*findings, **of_merge).tasks]


def test_unmerged_discards_older_orders_and_makes_nothing() -> None:
    """Only orders given before it closed end as discarded."""
    given_orders = [order(1, minutes=-5), order(2, minutes=0), order(3, minutes=5)]
    closed = plan_unmerged(given_orders, closed_at=NOW, still_closed=True)
    assert (closed.discarded, closed.tasks) == ((1,), ())
    (decision,) = closed.decisions
    assert decision.as_record() == {
        "outcome": "nothing_handed_off",
        "reason": "not_merged",
        "reasons": ["not_merged"],
        "compared": {
            "closed_at": "2026-05-01T12:00:00+00:00",
            "still_closed": True,
            "orders": 3,
            "discarded": 1,
        },
        "trace": [["merged", "not_merged"]],
    }


def test_a_reopened_pull_request_keeps_its_orders() -> None:
    """The forge's word of now counts, not the delivery that came late."""
    closed = plan_unmerged([order(1, minutes=-5)], closed_at=NOW, still_closed=False)
    assert (closed.discarded, closed.tasks) == ((), ())
    assert [decision.reason for decision in closed.decisions] == ["reopened"]


@PATIENT
@given(st.lists(anything(HumanOrder)), anything(datetime), st.booleans())
def test_unmerged_never_makes_a_task(
    orders: list[HumanOrder], closed_at: datetime, still_closed: bool
) -> None:
    """A pull request that was not merged causes zero tasks, whatever was ordered."""
    closed = plan_unmerged(orders, closed_at=closed_at, still_closed=still_closed)
    assert closed.tasks == ()
    assert set(closed.discarded) <= {each.id for each in orders}


def test_three_findings_of_one_file_are_one_task() -> None:
    """One automated fix pull request per file: three of them dead-locked each other."""
    assert groups(finding(1), finding(2), finding(3)) == [("a.py", (1, 2, 3))]


def test_two_files_are_two_tasks() -> None:
    """Files that nothing connects are fixed apart."""
    assert groups(finding(1), finding(2, "b.py")) == [("a.py", (1,)), ("b.py", (2,))]


def test_files_that_one_fix_needs_hang_together() -> None:
    """`also` connects files, through several findings too."""
    chain = [finding(1, "a.py", also=("b.py",)), finding(2, "b.py", also=("c.py",))]
    tasks = plan(*chain, finding(3, "c.py"), finding(4, "z.py")).tasks
    assert [task.paths for task in tasks] == [("a.py", "b.py", "c.py"), ("z.py",)]
    assert [task.finding_ids for task in tasks] == [(1, 2, 3), (4,)]


def test_what_is_too_large_is_split_by_path_and_the_rest_waits() -> None:
    """No task has more than five files; parts that share a file are fixed one after the other."""
    chain = [finding(number, f"{number}.py", also=(f"{number + 1}.py",)) for number in range(8)]
    tasks = plan(*chain).tasks
    assert [task.paths for task in tasks] == [
        ("0.py", "1.py", "2.py", "3.py", "4.py"),
        ("4.py", "5.py", "6.py", "7.py", "8.py"),
    ]
    assert [task.waiting for task in tasks] == [False, True]
    assert [task.finding_ids for task in tasks] == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_a_finding_that_needs_too_many_files_keeps_its_own() -> None:
    """Six files of one finding are cut to five, its own file first."""
    (task,) = plan(finding(1, "z.py", also=("a", "b", "c", "d", "e", "f"))).tasks
    assert task.paths == ("a", "b", "c", "d", "z.py")


def test_a_leased_file_makes_the_task_wait() -> None:
    """All files of a task are leased together or none is."""
    tasks = plan(
        finding(1, "a.py", also=("b.py",)), finding(2, "c.py"), leased_paths=frozenset({"b.py"})
    ).tasks
    assert [task.waiting for task in tasks] == [True, False]


def test_findings_for_the_file_of_a_waiting_task_join_it() -> None:
    """No second task stands in line for the same file; one without room for all is not joined."""
    waiting = (
        WaitingTask(9, "red", ("a.py",)),
        WaitingTask(8, "red", ("a.py", "1", "2", "3", "4")),
    )
    (task,) = plan(finding(1, also=("b.py",)), waiting_tasks=waiting).tasks
    assert (task.joins, task.waiting) == (9, True)


def test_the_key_names_merge_smallest_own_path_and_batch() -> None:
    """The same merge makes the same keys again, an order makes its own; the target is not in it."""
    facts = merge()
    (task,) = plan_merged([finding(1, "b.py", also=("a.py",))], facts, LIMITS).tasks
    assert task.key == "3:c0ffee:b.py:merge"
    (ordered,) = plan_merged([finding(order=order(7))], facts, LIMITS, batch="7").tasks
    assert (ordered.key, ordered.batch, ordered.ordered_ids) == (
        "3:c0ffee:a.py:7",
        "7",
        frozenset({1}),
    )


def test_a_merge_makes_at_most_ten_automatic_tasks_of_the_worst() -> None:
    """The cap keeps the worst and oldest; the others say that the budget is why."""
    many = [finding(number, f"{number:02}.py") for number in range(11)]
    bad = finding(50, "zz.py", severity=Severity.CRITICAL)
    made = plan(*many, bad)
    assert len(made.tasks) == 10
    assert {number for task in made.tasks for number in task.finding_ids} == {*range(9), 50}
    refused = [said for said in made.decisions if said.outcome == "no"]
    assert [said.reason for said in refused] == [HandoffReason.BUDGET] * 2
    names = [each.guard for each in refused[0].trace]
    assert names == [*(each.guard for each in made.decisions[0].trace), "task_cap"]
    assert [each.reason for each in refused[0].trace if each.reason] == [HandoffReason.BUDGET]
    assert refused[0].compared == {
        **made.decisions[0].compared,
        "path": "09.py",
        "tasks_allowed": 10,
    }


S = Severity.SUGGESTION
KEPT: list[Any] = [
    pytest.param([finding(2), finding(1, "b.py")], [(1,)], id="the oldest"),
    pytest.param(
        [finding(2), finding(1, "b.py"), finding(9, "b.py")], [(1, 9)], id="by its oldest finding"
    ),
    pytest.param(
        [
            finding(1),
            finding(2, "b.py", severity=Severity.CRITICAL),
            finding(3, "b.py", severity=S),
        ],
        [(2, 3)],
        id="by its worst finding",
    ),
    pytest.param(
        [finding(1), finding(2, "w.py"), finding(3, "b.py")],
        [(1,), (2,)],
        id="what joins a waiting task takes no room",
    ),
]


@pytest.mark.parametrize(("findings", "kept"), KEPT)
def test_which_task_is_kept_when_there_is_room_for_one(
    findings: list[HandoffFinding], kept: list[tuple[int, ...]]
) -> None:
    """A cap of three, and the merge has made two already: the worst, then the oldest."""
    made = plan(
        *findings,
        limits=Limits(max_fix_tasks=3),
        tasks_of_merge=2,
        minimum_severity=S,
        waiting_tasks=(WaitingTask(9, "red", ("w.py",)),),
    )
    assert [task.finding_ids for task in made.tasks] == kept


def test_orders_are_not_paid_from_the_automatic_tasks() -> None:
    """An ordered task is made beyond the cap and takes no room from it."""
    made = plan(finding(1), finding(2, "b.py", order=order()), limits=Limits(max_fix_tasks=1))
    assert [task.finding_ids for task in made.tasks] == [(1,), (2,)]
    made = plan(finding(1), finding(2, "b.py", order=order()), limits=Limits(max_fix_tasks=0))
    assert [task.finding_ids for task in made.tasks] == [(2,)]


def test_an_ordered_finding_without_a_file_becomes_a_task_without_files() -> None:
    """A remark on the whole change can be ordered; it claims no file."""
    (task,) = plan(finding(1, None, order=order())).tasks
    assert (task.paths, task.finding_ids, task.key) == ((), (1,), "3:c0ffee::merge")


def test_an_order_on_an_escalated_task_is_listed_as_resumed() -> None:
    """The close plan says which escalated tasks an order resumes; it makes no task for them."""
    made = plan(finding(4, order=order(), covered_by=TaskState.ESCALATED))
    assert (made.tasks, made.resumed) == ((), (4,))


REFUSED_AT_MERGE = [
    pytest.param(finding(1, order=order(7)), [], id="carried out"),
    pytest.param(
        finding(1, order=order(7), in_merged_tree=False), [RefusedOrder(7, "not_open")], id="gone"
    ),
    pytest.param(
        finding(1, order=order(7), covered_by=TaskState.FIXING),
        [RefusedOrder(7, "already_handed_off")],
        id="a task works on it already",
    ),
    pytest.param(
        finding(1, order=replace(order(7), ended=True), in_merged_tree=False),
        [],
        id="one that has ended is not ended twice",
    ),
    pytest.param(finding(1, in_merged_tree=False), [], id="not ordered"),
]


@pytest.mark.parametrize(("asked", "refused"), REFUSED_AT_MERGE)
def test_an_order_that_can_not_be_carried_out_says_why(
    asked: HandoffFinding, refused: list[RefusedOrder]
) -> None:
    """At the merge a pending order becomes a task or ends as refused with the guard's code."""
    assert list(plan(asked).refused) == refused


def test_a_stop_refuses_no_order() -> None:
    """Deferred is no end: the order waits for the resume."""
    stopped = plan(finding(1, order=order()), stopped=True)
    assert (stopped.tasks, stopped.refused, stopped.resumed) == ((), (), ())


def test_a_doubled_merge_makes_nothing_twice() -> None:
    """Once covered, the findings of the first delivery are not handed off by the second."""
    assert plan(finding(1, covered_by=TaskState.QUEUED)).tasks == ()


@st.composite
def merged(draw: st.DrawFn) -> tuple[list[HandoffFinding], MergeFacts, Limits]:
    """Many open findings on few files, with their merge: mostly handed off."""
    count = draw(st.integers(0, 9))
    findings = [
        finding(
            number,
            draw(PATHS | st.none()),
            also=tuple(draw(st.lists(PATHS, max_size=7))),
            severity=draw(st.sampled_from(Severity)),
            order=draw(st.none() | anything(HumanOrder)),
            status=draw(st.sampled_from([FindingStatus.OPEN] * 3 + [FindingStatus.FIXED])),
            origin=draw(st.sampled_from([Origin.ORIGINAL] * 3 + [Origin.VERIFY])),
            target=draw(st.sampled_from([None, "red", "purple", "gone"])),
        )
        for number in range(count)
    ]
    facts = merge(
        mode=draw(st.sampled_from([HandoffMode.AUTO] * 3 + [HandoffMode.MANUAL])),
        leased_paths=draw(st.frozensets(PATHS, max_size=2)),
        waiting_tasks=draw(anything(tuple[WaitingTask, ...])),
        tasks_of_merge=draw(st.integers(0, 3)),
    )
    return findings, facts, draw(ANY_LIMITS)


Merged = tuple[list[HandoffFinding], MergeFacts, Limits]


@PATIENT
@given(merged(), st.randoms(use_true_random=False))
def test_the_order_of_findings_does_not_matter(world: Merged, chance: random.Random) -> None:
    """The same set of findings gives the same plan."""
    findings, facts, limits = world
    shuffled = findings[:]
    chance.shuffle(shuffled)
    one, other = plan_merged(findings, facts, limits), plan_merged(shuffled, facts, limits)
    assert one == other


@PATIENT
@given(merged())
def test_tasks_partition_what_is_handed_off(world: Merged) -> None:
    """Every finding that is handed off is in exactly one task; keys tell tasks apart."""
    findings, facts, limits = world
    made = plan_merged(findings, facts, limits)
    inside = [number for task in made.tasks for number in task.finding_ids]
    yes = [
        said.finding_id for said in made.decisions if isinstance(said, HandoffDecision) and said.yes
    ]
    assert sorted(inside) == sorted(yes)
    keys = [task.key for task in made.tasks]
    assert keys == sorted(set(keys))
    own = {each.id: each.path or "" for each in findings}
    for task in made.tasks:
        assert task.finding_ids == tuple(sorted(task.finding_ids))
        assert task.key == f"3:c0ffee:{min(own[number] for number in task.finding_ids)}:merge"


@PATIENT
@given(merged(), st.booleans())
def test_every_order_ends_once_or_waits(world: Merged, stopped: bool) -> None:
    """A pending order is in one task, refused, or resumes one task; deferred ones wait. Nothing is
    lost."""
    findings, facts, limits = world
    made = plan_merged(findings, replace(facts, stopped=stopped), limits)
    pending = {each.id: each.pending.id for each in findings if each.pending is not None}
    in_tasks = [number for task in made.tasks for number in task.ordered_ids]
    waiting = [
        said.finding_id
        for said in made.decisions
        if isinstance(said, HandoffDecision) and said.asks_again and said.finding_id in pending
    ]
    ended = [*in_tasks, *made.resumed, *waiting]
    refused = [order.order_id for order in made.refused]
    assert sorted([*(pending[number] for number in ended), *refused]) == sorted(pending.values())
    assert len(set(ended)) == len(ended)


@PATIENT
@given(merged())
def test_no_task_has_too_many_files_and_no_file_two_tasks(world: Merged) -> None:
    """Files per task are bounded, each finding's own file is in its one task, and tasks that may
    start at once share none."""
    findings, facts, limits = world
    made = plan_merged(findings, facts, limits)
    own = {each.id: each.path for each in findings if each.path}
    homes: dict[str, str] = {}
    for task in made.tasks:
        assert len(task.paths) <= limits.max_task_files
        for path in {own[number] for number in task.finding_ids if number in own}:
            assert path in task.paths
            assert homes.setdefault(path, task.key) == task.key
    starting = [path for task in made.tasks if not task.waiting for path in task.paths]
    assert len(starting) == len(set(starting))
    assert not facts.leased_paths & set(starting)


@PATIENT
@given(merged())
def test_automatic_tasks_never_exceed_the_cap(world: Merged) -> None:
    """tasks ≤ the merge's cap + orders."""
    findings, facts, limits = world
    made = plan_merged(findings, facts, limits)
    automatic = [task for task in made.tasks if not task.ordered_ids and task.joins is None]
    assert len(automatic) <= max(0, limits.max_fix_tasks - facts.tasks_of_merge)
    assert len(made.tasks) - len(automatic) <= len(findings)


def test_a_task_plan_is_made_here_alone() -> None:
    """Nobody can plan a task by hand: creating one takes a plan that the guards made."""
    (task,) = plan(finding(1)).tasks
    with pytest.raises(TypeError, match="ask loop_guards"):
        TaskPlan(
            key="k",
            target="red",
            paths=("a.py",),
            finding_ids=(1,),
            ordered_ids=frozenset(),
            batch="merge",
            waiting=False,
            decisions=task.decisions,
        )
