"""Reviewer noise: how fix tasks end when reviewers and fixers err. DESIGN §3.3, §3.4.

    .venv/bin/python -m tests.loop_guards.model.noise [--samples 40000] [--seed 1]

A Monte Carlo that knows the truth of each finding and drives the real functions of `loop_guards`:
`may_start_round`, `judge_fixed`, `judge_return`, `decide_fix_verdict`, `after_round`. Nothing of
the rules is written again here; a variant of a rule is other facts for the same functions.

Printed: a row for each (findings, drop, re-raise) under the real rules and under the naive one
(every return is a bounce); then one world, `TARGET_WORLD`, with one assumption changed at a time.
About seven minutes with the default samples.
"""

# ruff: noqa: S311, T201 - a simulation that prints
from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product

from loop_guards import (
    AfterRoundFacts,
    FindingStatus,
    FixedFacts,
    FixFinding,
    Limits,
    NextDecision,
    NextOutcome,
    NextReason,
    Origin,
    ReturnFacts,
    ReturnReason,
    RoundFacts,
    Severity,
    after_round,
    allowance,
    decide_fix_verdict,
    judge_fixed,
    judge_return,
    may_start_round,
)

SAMPLES = 40_000
"""Two standard errors of any share are then at most 0.5 %: 2 * sqrt(0.25 / 40 000)."""


@dataclass(frozen=True, slots=True)
class World:
    """A fix task of `findings` warnings and criticals, and how often who errs in it.

    The reviewer judges every finding in every round, independently. It calls a really open one
    fixed with probability `drop`, and reports a really fixed one with `reraise`: as still there if
    it is open on paper, as a return if it was marked fixed. A really open one that was marked fixed
    comes back with `rediscover`; None: as often as any open one is seen, 1 - drop. It may be less,
    since a reviewer is asked about open findings by name and has to find this one anew.

    In a turn the fixer works on each finding that blocks, and on nothing else. It fixes a really
    open one with probability `fix` (0.8: the assumption of the target below). One it fails at it
    edits in vain with `failed_edit`, one that is fixed already (the reviewer erred) it edits
    needlessly with `needless_edit`. Both are 1 by default: a model that is told to change something
    does; lower is the fixer that dares to answer "nothing to do". An edit changes the finding's
    file; findings are dealt out over `files` (1: a task is one file, DESIGN §3.2).

    `neighbour_touch`: an edit for one finding overlaps the anchor of one given other finding of its
    file. 0 by default, so that the reviewer's noise is all there is and every return of a fixed
    finding is the reviewer's doing. An edit of 6 lines and an anchor of 3 somewhere in a file of
    300 overlap with (6 + 3 - 1) / 300, about 3 %; in one of 150 lines with 5 %. `breaks`: such an
    overlap makes a fixed finding open again; 0 by default, for the same reason.
    """

    findings: int = 6
    drop: float = 0.10
    reraise: float = 0.05
    rediscover: float | None = None
    fix: float = 0.8
    failed_edit: float = 1.0
    needless_edit: float = 1.0
    files: int = 1
    neighbour_touch: float = 0.0
    breaks: float = 0.0


TARGET_WORLD = World()
TARGET_SHARE = 0.90
"""The product's target: in TARGET_WORLD this share is rightly approved, and nothing bounces."""

GRID = tuple(
    World(findings=size, drop=drop, reraise=reraise)
    for size, drop, reraise in product((3, 6), (0.0, 0.05, 0.10, 0.20), (0.0, 0.05, 0.10))
)


class BotTouch(StrEnum):
    """Which returns are said to follow a bot's touch. RECORDED is the truth, the others variants.

    SECOND: only if the finding came back once before; its first touched return is then a flip.
    """

    RECORDED = "recorded"
    ALWAYS = "always"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules, by the facts they are given. The defaults are those of DESIGN §3.4.

    `second_look`: a turn without any change is no stall unless the one before had none either, and
    evidence is a change since the hand-off instead of one since the finding was last seen.
    """

    name: str
    bot_touch: BotTouch = BotTouch.RECORDED
    second_look: bool = False
    limits: Limits = field(default_factory=Limits)


REAL = Rules("real")
NAIVE = Rules("naive", bot_touch=BotTouch.ALWAYS)
SECOND_BOUNCE = Rules("second bounce", bot_touch=BotTouch.SECOND)
SECOND_LOOK = Rules("second look", second_look=True)
PATIENT_STALL = Rules("stall after 3", limits=Limits(stall_turns=3))
PATIENT_FLIP = Rules("third flip", limits=Limits(max_flips=3))


class End(StrEnum):
    """How a task ended, seen with the truth: right approvals have nothing really open."""

    RIGHT_APPROVAL = "right approval"
    WRONG_APPROVAL = "wrong approval"
    RIGHT_ESCALATION = "right escalation"
    WRONG_ESCALATION = "wrong escalation"


@dataclass(frozen=True, slots=True)
class Ending:
    """The last decision of a task, the truth at that moment, and what it took."""

    decision: NextDecision
    all_fixed: bool
    rounds: int
    bounces: int

    @property
    def end(self) -> End:
        if self.decision.outcome == NextOutcome.APPROVE:
            return End.RIGHT_APPROVAL if self.all_fixed else End.WRONG_APPROVAL
        return End.WRONG_ESCALATION if self.all_fixed else End.RIGHT_ESCALATION


@dataclass(slots=True)
class _Finding:
    """`fixed` is the truth, `marked` what the ledger says; `touched` is since it was marked."""

    id: int
    file: str
    severity: Severity
    fixed: bool = False
    marked: bool = False
    touched: bool = False
    flips: int = 0
    blocked: bool = False

    def on_paper(self) -> FixFinding:
        return FixFinding(
            id=self.id,
            status=FindingStatus.FIXED if self.marked else FindingStatus.OPEN,
            origin=Origin.ORIGINAL,
            of_task=True,
            severity_at_handoff=self.severity,
            was_blocking=self.blocked,
        )


class _Task:
    """One fix task on its way: turn, round, turn, round, until something else follows."""

    def __init__(self, world: World, rules: Rules, rng: random.Random) -> None:
        self.world, self.rules, self.rng = world, rules, rng
        severities = (Severity.WARNING, Severity.CRITICAL)
        self.findings = [
            _Finding(number, f"{number % world.files}.py", severities[number % 2])
            for number in range(world.findings)
        ]
        self.blocking = frozenset(range(world.findings))
        self.history: tuple[frozenset[int], ...] = ()
        self.changed = self.changed_ever = frozenset[str]()
        self.touched_before = True
        self.bounces = 0

    def run(self) -> Ending:
        while True:
            self._turn()
            decision = self._round()
            if decision.outcome != NextOutcome.TURN:
                truth = all(item.fixed for item in self.findings)
                return Ending(decision, truth, len(self.history), self.bounces)

    def _turn(self) -> None:
        """The fixer works on what blocks."""
        changed = set()
        for item in self.findings:
            if item.id in self.blocking and self._edits(item):
                changed.add(item.file)
                self._touch_neighbours(item)
        self.changed = frozenset(changed)
        self.changed_ever |= self.changed

    def _edits(self, item: _Finding) -> bool:
        if item.fixed:
            return self._happens(self.world.needless_edit)
        item.fixed = self._happens(self.world.fix)
        return item.fixed or self._happens(self.world.failed_edit)

    def _touch_neighbours(self, edited: _Finding) -> None:
        for item in self.findings:
            neighbour = item is not edited and item.file == edited.file
            if neighbour and self._happens(self.world.neighbour_touch):
                item.touched = True
                item.fixed = item.fixed and not self._happens(self.world.breaks)

    def _round(self) -> NextDecision:
        """The reviewer looks at everything, the guards say what its words are worth."""
        limits, started = self.rules.limits, len(self.history)
        rounds = allowance(limits, resumes=0)
        # A turn is only given while a round is left, so a refusal here would be a broken rule.
        assert may_start_round(RoundFacts(started, rounds), limits).allowed
        files = {item.file for item in self.findings if item.id in self.blocking}
        returns = [reason for item in self.findings if (reason := self._judge(item)) is not None]
        self.bounces += returns.count(ReturnReason.BOUNCE)
        on_paper = (item.on_paper() for item in self.findings)
        self.blocking = decide_fix_verdict(on_paper, coverage_full=True).blocking
        self.history = (*self.history, self.blocking)
        for item in self.findings:
            item.blocked = item.blocked or item.id in self.blocking
        return after_round(
            AfterRoundFacts(
                rounds_started=started + 1,
                allowance=rounds,
                blocking_history=self.history,
                coverage_full=True,
                bounced=ReturnReason.BOUNCE in returns,
                second_flip=ReturnReason.UNSTABLE_REVIEW in returns,
                touched=self._touched(files),
            ),
            limits,
        )

    def _touched(self, files: set[str]) -> bool:
        touched = not self.changed.isdisjoint(files)
        borne = self.rules.second_look and self.touched_before
        self.touched_before = touched
        return touched or borne

    def _judge(self, item: _Finding) -> ReturnReason | None:
        """What the reviewer says of one finding; a reason if it is a return."""
        reported = self._happens(self._report_chance(item))
        if not item.marked:
            evidence = self.changed_ever if self.rules.second_look else self.changed
            facts = FixedFacts(not reported, frozenset({item.file}), evidence)
            item.marked = judge_fixed(facts).fixed
            item.touched = False
            return None
        if not reported:
            return None
        item.marked = False
        # Warnings and criticals of a task block from its first moment.
        decision = judge_return(
            ReturnFacts(was_blocking=True, bot_touched=self._said_touched(item), flips=item.flips),
            self.rules.limits,
        )
        item.flips += decision.is_flip
        return ReturnReason(decision.reason)

    def _report_chance(self, item: _Finding) -> float:
        if item.fixed:
            return self.world.reraise
        if item.marked and self.world.rediscover is not None:
            return self.world.rediscover
        return 1 - self.world.drop

    def _said_touched(self, item: _Finding) -> bool:
        match self.rules.bot_touch:
            case BotTouch.RECORDED:
                return item.touched
            case BotTouch.ALWAYS:
                return True
            case BotTouch.SECOND:
                return item.touched and item.flips > 0

    def _happens(self, chance: float) -> bool:
        return self.rng.random() < chance


def simulate(world: World, rules: Rules, rng: random.Random) -> Ending:
    """One fix task from its first turn to its end. Ends always: the allowance is finite."""
    return _Task(world, rules, rng).run()


@dataclass(frozen=True, slots=True)
class Tally:
    """Many tasks. `whys` counts the reasons of escalations; `bounces` is a count, not a share."""

    samples: int
    ends: Mapping[End, int]
    whys: Mapping[NextReason, int]
    mean_rounds: float
    bounces: int

    def share(self, end: End) -> float:
        """Between 0 and 1; its standard error is `sigma`."""
        return self.ends.get(end, 0) / self.samples


def tally(world: World, rules: Rules, *, samples: int = SAMPLES, seed: int = 1) -> Tally:
    """The same seed gives the same tally, and every rule the same start in one world."""
    rng = random.Random(f"{seed} {world}")
    endings = [simulate(world, rules, rng) for _ in range(samples)]
    escalated = (each for each in endings if each.decision.outcome == NextOutcome.ESCALATE)
    return Tally(
        samples=samples,
        ends=Counter(each.end for each in endings),
        whys=Counter(NextReason(each.decision.reason) for each in escalated),
        mean_rounds=sum(each.rounds for each in endings) / samples,
        bounces=sum(each.bounces for each in endings),
    )


def sigma(share: float, samples: int) -> float:
    """The standard error of a share: binomial, since tasks are independent."""
    return math.sqrt(share * (1 - share) / samples)


def meets_target(measured: Tally) -> bool:
    """Whether the target holds as far as so many samples can tell.

    A true share at the target falls five standard errors below it less than once in a million runs.
    """
    least = TARGET_SHARE - 5 * sigma(TARGET_SHARE, measured.samples)
    return measured.share(End.RIGHT_APPROVAL) >= least and measured.bounces == 0


WHAT_IF: tuple[tuple[str, World, Rules], ...] = (
    ("as above", TARGET_WORLD, PATIENT_STALL),
    ("as above", TARGET_WORLD, PATIENT_FLIP),
    ("a file each", World(files=6), REAL),
    ("half rediscovered", World(rediscover=0.5), REAL),
    ("none rediscovered", World(rediscover=0.0), REAL),
    ("no failed edits", World(failed_edit=0.0), REAL),
    ("no failed edits", World(failed_edit=0.0), SECOND_LOOK),
    ("half the needless edits", World(needless_edit=0.5), REAL),
    ("no needless edits", World(needless_edit=0.0), REAL),
    ("no needless edits", World(needless_edit=0.0), SECOND_LOOK),
    ("neighbours touched 2 %", World(neighbour_touch=0.02), REAL),
    ("neighbours touched 5 %", World(neighbour_touch=0.05), REAL),
    ("neighbours touched 5 %", World(neighbour_touch=0.05), SECOND_BOUNCE),
    ("10 %, a third of it breaks", World(neighbour_touch=0.10, breaks=0.3), REAL),
    ("10 %, a third of it breaks", World(neighbour_touch=0.10, breaks=0.3), SECOND_BOUNCE),
)
"""TARGET_WORLD with one assumption changed at a time; where that hurts, a rule that would help."""

_HEAD = "rules           right ap wrong ap right esc wrong esc  rounds  bounces  why escalated"


def _print_row(place: str, measured: Tally, rules: Rules) -> None:
    whys = ", ".join(
        f"{reason} {count / measured.samples:.1%}"
        for reason, count in sorted(measured.whys.items())
    )
    shares = "{:9.2%}{:9.2%}{:10.2%}{:10.2%}".format(*map(measured.share, End))
    counts = f"{measured.mean_rounds:8.2f}{measured.bounces:9}"
    print(f"{place}{rules.name:<15}{shares}{counts}  {whys}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables, row by row as they are measured."""
    parser = argparse.ArgumentParser(description="How fix tasks end when reviewers and fixers err.")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="tasks a row (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    given = parser.parse_args(arguments)
    if given.samples < 1:
        parser.error("--samples must be at least 1: a share needs tasks to be a share of")
    error = sigma(0.5, given.samples)
    print(f"{given.samples} tasks a row; shares within {2 * error:.2%} (two standard errors)\n")
    print(f"findings  drop  re-raise  {_HEAD}")
    for world, rules in product(GRID, (REAL, NAIVE)):
        place = f"{world.findings:>8}{world.drop:6.0%}{world.reraise:10.0%}  "
        measured = tally(world, rules, samples=given.samples, seed=given.seed)
        _print_row(place, measured, rules)
    print(f"\n6 findings, drop 10 %, re-raise 5 %\n{'what if':<28}{_HEAD}")
    for label, world, rules in WHAT_IF:
        measured = tally(world, rules, samples=given.samples, seed=given.seed)
        _print_row(f"{label:<28}", measured, rules)


if __name__ == "__main__":
    main()
