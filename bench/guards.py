# ruff: noqa: T201 - a table that is printed
"""How long the guards take: `python -m bench.guards`.

A decision holds its trace and the values it compared. The bound (2 ms for 200 findings) is for the
decisions themselves; the whole plan of a merge with its grouping is printed beside it, and both as
a multiple of building 200 plain dictionaries of the same size, measured in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from loop_guards import (
    FindingStatus,
    FixFinding,
    HandoffFinding,
    HandoffMode,
    Limits,
    MergeFacts,
    Origin,
    Severity,
    decide_fix_verdict,
    decide_handoff,
    plan_merged,
)

FINDINGS = 200
ROUNDS = 200
BOUND_MS = 2.0
LIMITS = Limits()
MERGE = MergeFacts(
    now=datetime(2026, 5, 1, tzinfo=UTC),
    repository=1,
    merge_commit="c0ffee",
    base="main",
    default_branch="main",
    mode=HandoffMode.AUTO,
    author_is_bot=False,
    is_fix_pr=False,
    merged=True,
)
HANDED = tuple(
    HandoffFinding(
        id=number,
        path=f"src/file{number // 2}.py",
        severity=Severity.WARNING if number % 3 else Severity.CRITICAL,
        origin=Origin.ORIGINAL,
        status=FindingStatus.OPEN,
    )
    for number in range(FINDINGS)
)
FIXING = tuple(
    FixFinding(
        id=number,
        status=FindingStatus.OPEN if number % 2 else FindingStatus.FIXED,
        origin=Origin.ORIGINAL,
        of_task=True,
        severity_at_handoff=Severity.WARNING,
    )
    for number in range(FINDINGS)
)


def milliseconds(work: Callable[[], object]) -> float:
    """The fastest of many calls: what the code needs when nobody else takes the processor."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best * 1_000


def main() -> None:
    """Print the table."""
    plain = milliseconds(
        lambda: [dict(zip("abcdefghijklmnopqrs", range(19), strict=True)) for _ in HANDED]
    )
    rows = (
        (
            "decide_handoff, each with its trace",
            lambda: [decide_handoff(f, MERGE, LIMITS) for f in HANDED],
        ),
        (
            "decide_fix_verdict, one with its trace",
            lambda: decide_fix_verdict(FIXING, coverage_full=True),
        ),
        ("plan_merged, decisions and tasks", lambda: plan_merged(HANDED, MERGE, LIMITS)),
    )
    print(f"{FINDINGS} findings{'ms':>36}{'of the bound':>16}{'x plain dicts':>16}")
    for name, work in rows:
        took = milliseconds(work)
        print(f"{name:<40}{took:>7.2f}{took / BOUND_MS:>16.2f}{took / plain:>16.1f}")


if __name__ == "__main__":
    main()
