"""How findings become tasks: one target, one order, no file that is none. DESIGN §3.2."""

from __future__ import annotations

from typing import Any

import pytest

from loop_guards import (
    ClosePlan,
    Handed,
    HandoffDecision,
    HandoffFinding,
    Limits,
    Severity,
    WaitingTask,
    coalesce,
    decide_handoff,
    plan_merged,
)
from tests.loop_guards.factories import (
    LIMITS,
    finding,
    merge,
    order,
)


def plan(*findings: HandoffFinding, limits: Limits = LIMITS, **of_merge: Any) -> ClosePlan:
    return plan_merged(findings, merge(**of_merge), limits)


TWINS = [
    pytest.param(finding(1, "a.py"), finding(1, "b.py"), id="another file"),
    pytest.param(finding(1, also=("b.py",)), finding(1, also=("c.py",)), id="other needs"),
    pytest.param(finding(1), finding(1, severity=Severity.CRITICAL), id="another severity"),
]


@pytest.mark.parametrize(("one", "other"), TWINS)
def test_findings_that_share_an_id_make_one_plan_in_any_order(
    one: HandoffFinding, other: HandoffFinding
) -> None:
    """Ids are unique; where they are not, a repeat still plans the same one task."""
    handed = [Handed(each, decide_handoff(each, merge(), LIMITS)) for each in (one, other)]
    there = coalesce(handed, merge(), LIMITS)
    assert there == coalesce(handed[::-1], merge(), LIMITS)
    assert [task.finding_ids for task in there] == [(1,)]


def test_a_task_names_no_file_for_a_finding_without_one() -> None:
    """A remark on the whole change may need too many files: those are cut, and nothing else."""
    asked = finding(1, None, also=("c.py", "b.py", "a.py"), order=order())
    (task,) = plan(asked, limits=Limits(max_task_files=2)).tasks
    assert (task.paths, task.key) == (("a.py", "b.py"), "3:c0ffee::merge")


def test_an_empty_name_is_no_file() -> None:
    """Findings that name no file are together, and hang together with nobody by that."""
    asked = [
        finding(1, also=("",)),
        finding(2, None, order=order()),
        finding(3, "", order=order()),
        finding(4, None, also=("b.py",), order=order()),
        finding(5, "b.py"),
    ]
    assert [(task.paths, task.finding_ids) for task in plan(*asked).tasks] == [
        (("b.py",), (2, 3, 4, 5)),
        (("a.py",), (1,)),
    ]


def test_a_finding_names_a_few_more_files_and_no_more() -> None:
    """`max_also_files` of them count, in its own order."""
    (task,) = plan(finding(1, also=("z.py", "b.py")), limits=Limits(max_also_files=1)).tasks
    assert task.paths == ("a.py", "z.py")


def test_tasks_are_listed_by_key() -> None:
    """By the files that findings lie in, not by those that a fix needs besides."""
    tasks = plan(finding(1, "z.py", also=("a.py",)), finding(2, "b.py")).tasks
    assert [task.key for task in tasks] == ["3:c0ffee:b.py:merge", "3:c0ffee:z.py:merge"]


@pytest.mark.parametrize("folder", "pqrstuvw")
def test_the_smallest_file_names_the_task(folder: str) -> None:
    """The same findings have the same key in every process, however their files are collected."""
    names = [f"{folder}/{name}.py" for name in "abcde"]
    (task,) = plan(*[finding(n, name, also=(names[0],)) for n, name in enumerate(names)]).tasks
    assert (task.key, task.paths) == (f"3:c0ffee:{names[0]}:merge", tuple(names))


def test_what_is_split_is_packed_by_path() -> None:
    """From the smallest file on, whatever the ids are; the first part goes first."""
    chain = [finding(9 - place, f"{place}.py", also=(f"{place + 1}.py",)) for place in range(8)]
    tasks = plan(*chain).tasks
    assert [(task.paths[0], task.waiting) for task in tasks] == [("0.py", False), ("4.py", True)]
    assert [task.finding_ids for task in tasks] == [(6, 7, 8, 9), (2, 3, 4, 5)]


def test_findings_without_a_file_are_packed_first() -> None:
    """What they need besides is where their part begins."""
    asked = [
        finding(1, None, also=("a.py",), order=order()),
        finding(2, "a.py", also=("b.py",)),
        finding(3, "b.py", also=("c.py",)),
    ]
    tasks = plan(*asked, limits=Limits(max_task_files=2)).tasks
    assert [task.finding_ids for task in tasks] == [(1, 2), (3,)]


def handed(number: int, path: str, said: HandoffDecision) -> Handed:
    return Handed(finding(number, path), said)


def test_only_a_yes_about_the_finding_itself_makes_a_task() -> None:
    """Neither a refusal nor the yes about another finding hands one off."""
    yes = decide_handoff(finding(1), merge(), LIMITS)
    no = decide_handoff(finding(2), merge(author_is_bot=True), LIMITS)
    tasks = coalesce(
        [handed(1, "a.py", yes), handed(2, "b.py", no), handed(3, "c.py", yes)], merge(), LIMITS
    )
    assert [task.finding_ids for task in tasks] == [(1,)]


WAITING = [
    pytest.param([(9, "a.py b.py c.py d.py")], 9, id="room for one more file"),
    pytest.param([(9, "a.py b.py c.py d.py f.py")], None, id="no room"),
    pytest.param([(9, "b.py")], None, id="another file"),
    pytest.param([(9, "a.py"), (8, "a.py")], 8, id="the oldest"),
    pytest.param([(8, "b.py"), (9, "a.py")], 9, id="the one of that file"),
    pytest.param([], None, id="none"),
]


@pytest.mark.parametrize(("waiting", "joined"), WAITING)
def test_which_waiting_task_is_joined(waiting: list[tuple[int, str]], joined: int | None) -> None:
    """The oldest one on a file of the finding that has room for all its files."""
    tasks = tuple(WaitingTask(number, "red", tuple(paths.split())) for number, paths in waiting)
    (task,) = plan(finding(1, also=("e.py",)), waiting_tasks=tasks).tasks
    assert (task.joins, task.waiting) == (joined, joined is not None)


C, W = Severity.CRITICAL, Severity.WARNING
TARGETS = [
    pytest.param([finding(1)], "red", id="the policy's first"),
    pytest.param([finding(1, target="purple")], "purple", id="what the policy picks"),
    pytest.param([finding(1, target="gone")], "red", id="a pick that the policy lost"),
    pytest.param(
        [finding(1), finding(2, order=order(target="purple"))], "purple", id="a human's choice"
    ),
    pytest.param([finding(1, order=order(target="gone"))], "red", id="a choice that is gone"),
    pytest.param(
        [finding(1, severity=C, target="red"), finding(2, order=order(target="purple"))],
        "purple",
        id="a human's choice before severity",
    ),
    pytest.param(
        [finding(1, target="red"), finding(2, severity=C, target="purple")],
        "purple",
        id="severity before policy order",
    ),
    pytest.param(
        [finding(1, order=order(target="purple")), finding(2, order=order(target="red"))],
        "red",
        id="policy order before id",
    ),
]


@pytest.mark.parametrize(("findings", "target"), TARGETS)
def test_a_task_has_one_target(findings: list[HandoffFinding], target: str) -> None:
    """A human's choice, then severity, then the policy's order, then the smallest id."""
    (task,) = plan(*findings).tasks
    assert task.target == target


def test_without_targets_the_builtin_fixer_is_asked() -> None:
    """A policy that names no target still gets a task that somebody can do."""
    (task,) = plan(finding(1), targets=()).tasks
    assert task.target == "builtin"
