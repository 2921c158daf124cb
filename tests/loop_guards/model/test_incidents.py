"""Two incidents of the field as whole stories, round for round. DESIGN §3.2 to §3.4.

    .venv/bin/python -m pytest -q tests/loop_guards/model/test_incidents.py

Each is told twice: under our rules, and under the rule that caused it, so that the story is known
to tell them apart. The rule of the incident is other facts for the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import pytest

from loop_guards import (
    AfterRoundFacts,
    FindingStatus,
    FixedFacts,
    FixFinding,
    HandoffFinding,
    Limits,
    NextDecision,
    NextOutcome,
    NextReason,
    Severity,
    after_round,
    allowance,
    decide_fix_verdict,
    judge_fixed,
    may_start_round,
    plan_merged,
)
from tests.loop_guards.factories import LIMITS, before_round, finding, introduced, merge, of_task

C, W, S = Severity.CRITICAL, Severity.WARNING, Severity.SUGGESTION
TURN, APPROVE, ESCALATE = NextOutcome.TURN, NextOutcome.APPROVE, NextOutcome.ESCALATE

FILE = "a.py"
IN_FILE = frozenset({FILE})
THREE = (1, 2, 3)
"""Findings in FILE."""


@dataclass
class FixPull:
    """A fix pull request: before each round a turn that changes FILE, until all is said."""

    limits: Limits = LIMITS
    history: tuple[frozenset[int], ...] = ()
    said: list[NextDecision] = field(default_factory=list)

    @property
    def goes_on(self) -> bool:
        """Whether another turn and round follow."""
        facts = before_round(rounds_started=len(self.said), allowance=allowance(self.limits, 0))
        asked_for = not self.said or self.said[-1].outcome == TURN
        return asked_for and may_start_round(facts, self.limits).allowed

    @property
    def outcomes(self) -> list[str]:
        return [decision.outcome for decision in self.said]

    def round(self, findings: Iterable[FixFinding]) -> NextDecision:
        """The verdict on what a look found, and what follows it."""
        blocked = frozenset[int]().union(*self.history)
        seen = [replace(item, was_blocking=item.id in blocked) for item in findings]
        verdict = decide_fix_verdict(seen, coverage_full=True)
        self.history = (*self.history, verdict.blocking)
        facts = AfterRoundFacts(
            rounds_started=len(self.history),
            allowance=allowance(self.limits, 0),
            blocking_history=self.history,
            coverage_full=True,
        )
        self.said.append(after_round(facts, self.limits))
        return self.said[-1]


def status(*, fixed: bool) -> FindingStatus:
    """What a true reviewer's word makes of a finding in FILE, which every turn changes."""
    decision = judge_fixed(FixedFacts(claimed_fixed=fixed, files=IN_FILE, changed_files=IN_FILE))
    return FindingStatus.FIXED if decision.fixed else FindingStatus.OPEN


# Three fixes of one file waited for each other.


def three_in_a_file() -> list[HandoffFinding]:
    return [finding(number, FILE) for number in THREE]


def test_findings_of_one_file_are_one_task_and_its_fix_is_approved() -> None:
    """One file, one task, one fix pull request: there is nobody to wait for."""
    (task,) = plan_merged(three_in_a_file(), merge(), LIMITS).tasks
    assert (task.finding_ids, task.paths, task.waiting) == (THREE, (FILE,), False)
    pull = FixPull()
    for fixed in ({1, 3}, {1, 2, 3}):
        pull.round(of_task(n, status=status(fixed=n in fixed)) for n in task.finding_ids)
    assert pull.outcomes == [TURN, APPROVE]
    assert [set(blocking) for blocking in pull.history] == [{2}, set()]


def test_a_later_task_on_the_file_waits_for_it() -> None:
    """While one task holds the file, findings of the next merge open no fix beside it."""
    (task,) = plan_merged(three_in_a_file(), merge(leased_paths=IN_FILE), LIMITS).tasks
    assert task.waiting


View = Callable[[int, set[int]], list[FixFinding]]
"""(the task's finding, what is really fixed on its branch) -> the findings as they are judged."""


def own_blocks(own: int, fixed: set[int]) -> list[FixFinding]:
    """Our rule: findings of the other tasks are in the list, but not of this task. Here they are
    criticals, on lines that the fix's own diff shows."""
    listed = {"severity_when_raised": C, "in_own_diff": True}
    return [of_task(n, of_task=n == own, status=status(fixed=n in fixed), **listed) for n in THREE]


def carried_block(own: int, fixed: set[int]) -> list[FixFinding]:
    """The rule of the incident: whatever was found in the file before has to be fixed first."""
    return [of_task(n, status=status(fixed=n in fixed)) for n in THREE]


def three_fixes(view: View, limits: Limits = LIMITS) -> tuple[set[int], dict[int, FixPull]]:
    """Three tasks with one finding each, side by side. What is approved is merged at once, and the
    others have it from the base in their next turn. Until nobody may go on."""
    merged: set[int] = set()
    pulls = {number: FixPull(limits) for number in THREE}
    while waiting := [number for number, pull in pulls.items() if pull.goes_on]:
        approved = {n for n in waiting if pulls[n].round(view(n, merged | {n})).outcome == APPROVE}
        merged |= approved
    return merged, pulls


def test_three_tasks_on_one_file_are_each_approved() -> None:
    """Even if three tasks existed, each is judged by its own finding: approved in round one."""
    merged, pulls = three_fixes(own_blocks)
    assert merged == set(THREE)
    assert [pull.outcomes for pull in pulls.values()] == [[APPROVE]] * 3


@pytest.mark.parametrize(
    ("limits", "reason", "rounds"),
    [
        pytest.param(LIMITS, NextReason.STALL, 3, id="our stall rule ends it early"),
        pytest.param(Limits(stall_turns=99), NextReason.CAP, 5, id="the cap"),
        pytest.param(
            Limits(stall_turns=99, max_review_iterations=40), NextReason.CAP, 40, id="any cap"
        ),
    ],
)
def test_the_rule_of_the_incident_dead_locks(
    limits: Limits, reason: NextReason, rounds: int
) -> None:
    """Each needs the other two merged, so none ever is, however many rounds they get."""
    merged, pulls = three_fixes(carried_block, limits)
    assert merged == set()
    for own, pull in pulls.items():
        assert pull.outcomes == [TURN] * (rounds - 1) + [ESCALATE]
        assert pull.said[-1].reason == reason
        assert set(pull.history) == {frozenset(THREE) - {own}}


# Every round found something new to remark on the fix, until the cap.


def as_ours(number: int, severity: Severity, *, fixed: bool) -> FixFinding:
    """A remark on the fix's own diff, first raised there."""
    return introduced(number, severity_when_raised=severity, status=status(fixed=fixed))


def as_the_incident(number: int, severity: Severity, *, fixed: bool) -> FixFinding:
    """The rule of the incident: a fresh remark counts as much as what was to be fixed."""
    return of_task(number, severity_at_handoff=severity, status=status(fixed=fixed))


def remarked_fix(
    remark: Callable[..., FixFinding], fresh: tuple[Severity, ...], *, fixed_in: int = 1
) -> FixPull:
    """The fixer fixes the task's finding in turn `fixed_in` and every remark in the turn after it;
    the reviewer has as many new ones, of the severities `fresh`, in each round."""
    pull, remarks = FixPull(), list[tuple[int, Severity]]()
    while pull.goes_on:
        turn = len(pull.said) + 1
        new = [(10 * turn + place, severity) for place, severity in enumerate(fresh)]
        pull.round(
            [
                of_task(1, status=status(fixed=turn >= fixed_in)),
                *(remark(number, severity, fixed=True) for number, severity in remarks),
                *(remark(number, severity, fixed=False) for number, severity in new),
            ]
        )
        remarks += new
    return pull


@pytest.mark.parametrize("fresh", [(W,), (W, W, W), (S, W)], ids=["one", "three", "mixed"])
@pytest.mark.parametrize("fixed_in", [1, 2])
def test_fresh_high_remarks_keep_no_fix_from_approval(
    fresh: tuple[Severity, ...], fixed_in: int
) -> None:
    """Approved in the round that sees the task's finding fixed, whatever else is remarked."""
    pull = remarked_fix(as_ours, fresh, fixed_in=fixed_in)
    assert pull.outcomes == [TURN] * (fixed_in - 1) + [APPROVE]
    assert pull.history[-1] == set()


@pytest.mark.parametrize("fresh", [(W,), (W, W, W), (S, W)], ids=["one", "three", "mixed"])
def test_the_rule_of_the_incident_asks_four_times_and_gives_up(fresh: tuple[Severity, ...]) -> None:
    """Never the same set twice, so no stall either: four change requests, escalated at five."""
    pull = remarked_fix(as_the_incident, fresh)
    assert pull.outcomes == [TURN] * 4 + [ESCALATE]
    assert pull.said[-1].reasons == (NextReason.CAP,)


def test_fresh_criticals_do_keep_a_fix_from_approval() -> None:
    """Convergence is no blindness: a fix that brings in an outage each round ends with a human."""
    pull = remarked_fix(as_ours, (C, W))
    assert pull.outcomes == [TURN] * 4 + [ESCALATE]
    assert [set(blocking) for blocking in pull.history] == [{10}, {20}, {30}, {40}, {50}]


def test_a_critical_that_the_fix_brought_in_is_fixed_and_then_approved() -> None:
    """One fresh critical costs one turn; called a warning it would still have to be fixed."""
    pull = FixPull()
    own = of_task(1, status=status(fixed=True))
    pull.round([own, as_ours(10, C, fixed=False)])
    pull.round([own, replace(as_ours(10, C, fixed=False), severity_now=W)])
    pull.round([own, as_ours(10, C, fixed=True), as_ours(11, W, fixed=False)])
    assert pull.outcomes == [TURN, TURN, APPROVE]
