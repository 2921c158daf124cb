"""What a review comes to: the exit code as a function of findings, threshold and coverage."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from app.agents.findings_xml import ParsedReview, ParseOutcome
from app.cli.output import Exit
from app.cli.review_report import Report, Round, print_text
from app.cli.review_source import Change
from app.domain.coverage import MISSING as STATES_MISSING
from app.domain.coverage import Coverage, CoverageEntry, CoverageState
from app.domain.diff import Diff
from app.domain.findings import Finding, Location
from app.domain.policy import Policy
from app.domain.runs import Usage
from app.git.mirror import Repository
from app.policy.load import EffectivePolicy, PolicySource
from app.review.conduct import Conducted
from app.review.plan import ReviewPlan
from app.review.risk import assess
from app.review.source import Source
from app.review.verdict import human_verdict
from loop_guards import FindingStatus, Limits, Origin, Severity

SHA = "0" * 40


def finding(severity: Severity = Severity.CRITICAL) -> Finding:
    """One open finding."""
    return Finding(
        id=1,
        short_id="F1",
        location=Location("a.py", 3),
        severity=severity,
        category="security",
        title="A title",
        body="A body.",
        suggestion=None,
        also=(),
        origin=Origin.ORIGINAL,
        status=FindingStatus.OPEN,
        first_seen_sha=SHA,
        last_seen_sha=SHA,
    )


def report(
    *findings: Finding,
    fail_on: Severity | None = Severity.CRITICAL,
    state: CoverageState = CoverageState.REVIEWED,
    incomplete: tuple[str, ...] = (),
    read: bool = True,
) -> Report:
    """A report of one file; `read`: agents have looked at it."""
    coverage = Coverage((CoverageEntry("a.py", state, ""),))
    source = Source(Repository(Path("/nowhere")), SHA, SHA, Diff(()))
    change = Change(
        name="notes",
        top=None,
        base_name="main",
        base=SHA,
        head_name="HEAD",
        source=source,
        policy=EffectivePolicy(Policy(), PolicySource.DEFAULT),
        title="",
        body="",
        author="",
        remarks=(),
    )
    plan = ReviewPlan((), coverage, assess(()), ())
    if not read:
        return Report(change, plan, fail_on)
    full = coverage.is_full and not incomplete
    done = Round(
        findings=findings,
        dropped=(),
        conducted=Conducted((), ParsedReview(ParseOutcome.OK), Usage(), (), incomplete, {}),
        verdict=human_verdict(findings, Limits(), full=full),
        full=full,
    )
    return Report(change, plan, fail_on, done)


WARNING, SUGGESTION = finding(Severity.WARNING), finding(Severity.SUGGESTION)
MISSING = CoverageState.TOO_LARGE


@pytest.mark.parametrize(
    ("made", "code", "result"),
    [
        pytest.param(report(), Exit.CLEAN, "passed", id="nothing found"),
        pytest.param(report(WARNING), Exit.CLEAN, "passed", id="below the threshold"),
        pytest.param(report(finding()), Exit.FINDINGS, "findings", id="at the threshold"),
        pytest.param(
            report(finding(), fail_on=Severity.SUGGESTION), Exit.FINDINGS, "findings", id="above it"
        ),
        pytest.param(report(finding(), fail_on=None), Exit.CLEAN, "passed", id="never"),
        pytest.param(report(read=False), Exit.CLEAN, "nothing_to_review", id="nothing to read"),
        pytest.param(
            report(read=False, state=CoverageState.SKIPPED),
            Exit.CLEAN,
            "nothing_to_review",
            id="noise alone",
        ),
        pytest.param(report(state=MISSING), Exit.FAILED, "incomplete", id="a file is missing"),
        pytest.param(
            report(state=MISSING, read=False), Exit.FAILED, "incomplete", id="the only file is"
        ),
        pytest.param(
            report(incomplete=("security",)), Exit.FAILED, "incomplete", id="a reviewer is missing"
        ),
        pytest.param(
            report(finding(), incomplete=("security",)),
            Exit.FINDINGS,
            "findings",
            id="missing, but the rest found enough",
        ),
        pytest.param(
            report(finding(), incomplete=("security",), fail_on=None),
            Exit.FAILED,
            "incomplete",
            id="missing, and findings do not count",
        ),
    ],
)
def test_how_the_command_ends(made: Report, code: Exit, result: str) -> None:
    """Findings at the threshold come first; nothing that was not wholly read is called clean."""
    assert (made.exit_code, made.result) == (code, result)
    assert made.to_json()["exit_code"] == code


@pytest.mark.parametrize("state", STATES_MISSING)
def test_what_nobody_read_is_named(state: CoverageState) -> None:
    """Whatever kept it from being read, and whether or not the rest was."""
    for made in (report(state=state), report(state=state, read=False)):
        out = StringIO()
        print_text(made, Console(file=out, width=200))
        assert f"Not reviewed: a.py ({state.value})" in out.getvalue()
