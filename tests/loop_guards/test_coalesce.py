"""How findings become tasks: one target, one order, no file that is none. DESIGN §3.2."""

from __future__ import annotations

from typing import Any

import pytest

from loop_guards import (
    ClosePlan,
    Handed,
    HandoffFinding,
    Limits,
    Severity,
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
