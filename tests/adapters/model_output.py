"""`model-output`: a reviewer's answer, in our elements or in JSON. YAML we never read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from app.agents.findings_xml import ParsedFindings, ParseOutcome, parse_findings
from app.agents.port import FinishReason
from app.domain.findings import ReportedFinding
from tests.adapters.case import Case, only_knows

# A reviewer is asked once more after an answer that is not whole, or not for everybody.
OUTCOMES = {"ok": {"ok"}, "partial": {"partial", "retry"}, "failed": {"failed", "retry"}}
OUTCOMES["language"] = {"retry"}
EXPECTED = (
    "outcome", "outcome_in", "findings", "findings_at_most", "may_approve", "kept_bodies_include",
    "never_inline_paths", "empty_comment_posted", "if_ok_findings", "finding_lost",
)  # fmt: skip


async def check(case: Case, _: Path) -> None:
    if case.input.get("format", "xml") not in ("xml", "json"):
        pytest.skip("a format that is never read")
    only_knows(case.expect, *EXPECTED)
    for text in case.input.get("texts", [case.input.get("text")]):
        _compare(_parse(text, case.input), case.expect)


def _parse(text: str, given: Mapping[str, Any]) -> ParsedFindings:
    named = re.findall(r"<path>([^<]*)</path>|\"path\":\s*\"([^\"]*)\"", text)
    paths = given.get("pull_request_files", [(tag or key).strip() for tag, key in named])
    finish = FinishReason(given.get("finish_reason", "stop"))
    return parse_findings(text, "security", paths, finish)


def _compare(parsed: ParsedFindings, expect: Mapping[str, Any]) -> None:
    wanted = set(expect.get("outcome_in", [expect.get("outcome", "ok")]))
    outcome = "language" if parsed.other_language else parsed.outcome.value
    assert OUTCOMES[outcome] & wanted, outcome
    findings = [_as_case(finding) for finding in parsed.findings]
    exact = expect.get("findings", expect.get("if_ok_findings"))
    if exact is not None and parsed.outcome is ParseOutcome.OK:
        assert [{key: f[key] for key in w} for f, w in zip(findings, exact, strict=True)] == exact
    assert len(findings) <= expect.get("findings_at_most", len(findings))
    assert {f["body"] for f in findings} >= set(expect.get("kept_bodies_include", ()))
    assert not {f["path"] for f in findings} & set(expect.get("never_inline_paths", ()))
    assert findings or expect.get("finding_lost", True)
    if expect.get("may_approve") is False:
        assert parsed.outcome is not ParseOutcome.OK


def _as_case(finding: ReportedFinding) -> dict[str, Any]:
    severity = finding.severity.value.replace("suggestion", "info")
    place = {"path": finding.location.path, "line": finding.location.start_line}
    return {**place, "severity": severity, "body": finding.body}
