"""Values that are valid by default, so that a test states only its difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.agents.workspace import Match
from app.domain.coverage import Coverage, CoverageEntry, CoverageState
from app.domain.diff import Diff, FileChange, FileStatus, Hunk
from app.domain.findings import Finding, Location
from app.domain.runs import Tier, Usage
from app.review.publish import Publishing
from app.review.render import NextStep, ReviewView
from loop_guards import FindingStatus, Origin, Severity, Verdict
from tests.domain.decisions import said


def finding(number: int = 1, **changes: object) -> Finding:
    base = Finding(
        id=number,
        short_id=f"F{number}",
        location=Location("app/a.py", 2, 2),
        severity=Severity.CRITICAL,
        category="security",
        title=f"Defect {number}",
        body="It breaks.",
        suggestion=None,
        also=(),
        origin=Origin.ORIGINAL,
        status=FindingStatus.OPEN,
        first_seen_sha="a" * 40,
        last_seen_sha="a" * 40,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def change(path: str = "app/a.py", lines: int = 4, **changes: object) -> FileChange:
    added = b"".join(b"+x = %d\n" % n for n in range(1, lines + 1))
    base = FileChange(
        path=path,
        old_path=None,
        status=FileStatus.ADDED,
        additions=lines,
        deletions=0,
        hunks=(Hunk(0, 0, 1, lines, added),),
        raw=b"+x\n",
        ends=3,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def coverage(state: CoverageState = CoverageState.REVIEWED, reason: str = "") -> Coverage:
    return Coverage((CoverageEntry("app/a.py", state, reason),))


def view(**changes: object) -> ReviewView:
    base = ReviewView(
        run_id=7,
        head_sha="b" * 40,
        verdict=Verdict.APPROVED,
        summary="",
        fresh=(),
        open_before=(),
        fixed=(),
        inline=frozenset(),
        blocking=frozenset(),
        coverage=coverage(),
        tier=Tier.LITE,
        failed_reviewers=(),
        round_number=1,
        allowance=None,
        next_step=NextStep.NOTHING,
        usage=Usage(model_calls=3, input_tokens=1000, output_tokens=50),
        models=("anthropic/claude-sonnet-4-6",),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def publishing(
    seen: ReviewView | None = None, *, is_fix_pr: bool = False, **changes: object
) -> Publishing:
    """A round to publish: the guards said what the view tells, knowing what was read."""
    told = seen or view()
    full = told.coverage.is_full and not told.failed_reviewers
    base = Publishing(
        view=told,
        diff=Diff((change(),)),
        pull_request_id=3,
        gated=False,
        is_fix_pr=is_fix_pr,
        decision=said(told.verdict, full=full, fix=is_fix_pr),
        changed=True,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


class EmptyTree:
    """Implements `app.agents.workspace.Tree` over nothing."""

    async def read(self, path: str) -> bytes | None:
        return None

    async def list(self, prefix: str) -> Sequence[str]:
        return ()

    async def glob(self, pattern: str) -> Sequence[str]:
        return ()

    async def grep(self, pattern: str, prefix: str, without: Sequence[str]) -> Sequence[Match]:
        return ()
