"""The script and the product read each other: tools and prompts one way, answers the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from app.agents.findings_xml import ParseOutcome, parse_findings, parse_fix_report, parse_review
from app.agents.numbered import numbered_file, numbered_patch
from app.agents.port import ToolError
from app.agents.reviewer_results import ReviewerOutcome, render_reviewer_results
from app.agents.workspace import Workspace
from app.domain.findings import CarriedState, ReportedFinding
from app.domain.runs import AgentName
from app.sandbox.model import load_scenario, load_story_files
from app.sandbox.model.conversation import Exchange
from app.sandbox.model.seen import Reading, reading_of
from tests.sandbox.model.builders import body, changed_files, named, run, system, tool

DEMO = load_scenario("demo")
FILES = {path: text for path, text in load_story_files("story1").items() if text}
PATH = "app/api/notes/search.py"
TITLES = {
    "SQL injection in the note search",
    "Hard-coded AWS access key",
    "Query without a limit",
}


class Tree:
    """Files in memory, as the reading tools want them."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    async def read(self, path: str) -> bytes | None:
        text = self._files.get(path)
        return None if text is None else text.encode()

    async def list(self, prefix: str) -> Sequence[str]:
        return []

    async def glob(self, pattern: str) -> Sequence[str]:
        return []

    async def grep(self, pattern: str, prefix: str, without: Any) -> Sequence[Any]:
        return []


def git_patch(old: str, new: str) -> bytes:
    lines = unified_diff(old.splitlines(True), new.splitlines(True), f"a/{PATH}", f"b/{PATH}")
    return "".join(lines).encode()


def reviewed(new: str, old: str = "") -> tuple[ReportedFinding, ...]:
    """What the product makes of the answer to its own rendering of a change."""
    shown = numbered_patch(git_patch(old, new), 50_000).text
    request = body(
        system=system("general"),
        messages=[{"role": "user", "content": changed_files(PATH)}],
        tools=[tool("read_patch")],
    )
    text, _ = run(DEMO, request, {"read_patch": lambda _: shown})
    parsed = parse_findings(text, "general", {PATH})
    assert (parsed.outcome, parsed.problems) == (ParseOutcome.OK, ())
    return parsed.findings


def test_the_product_reads_the_findings_whole() -> None:
    """Paths, lines and titles arrive as planted; the lines are those of the file."""
    findings = reviewed(FILES[PATH])
    assert {finding.title for finding in findings} == TITLES
    lines = FILES[PATH].split("\n")
    for finding in findings:
        entry = DEMO.titled(finding.title)
        assert entry is not None
        assert finding.location.path == PATH
        assert finding.location.start_line is not None
        assert entry.needle in lines[finding.location.start_line - 1]
        assert finding.severity.value == entry.severity


def test_a_change_that_removes_the_lines_has_no_findings() -> None:
    """A rendered patch of removed lines is clean."""
    assert reviewed('"""Nothing."""\n', old=FILES[PATH]) == ()


def test_the_product_reads_the_review_whole() -> None:
    """Every ref and every carried id is accounted for in the product's own reading."""
    outcome = ReviewerOutcome(AgentName.GENERAL, ParseOutcome.OK, reviewed(FILES[PATH]))
    failed = ReviewerOutcome(AgentName.SECURITY, ParseOutcome.FAILED, reason="timeout")
    open_before = {"id": "F7", "path": PATH, "title": "Query without a limit"}
    gone = {"id": "F8", "path": PATH, "title": "Share links can be predicted"}
    request = body(
        system=system("coordinator"),
        messages=[
            {"role": "user", "content": named("existing_inline_findings", open_before, gone)}
        ],
        tools=[tool("spawn_reviewers"), tool("read_file")],
    )
    tools = {
        "spawn_reviewers": lambda _: render_reviewer_results([outcome, failed]),
        "read_file": lambda _: numbered_file(FILES[PATH].encode(), 1, None, 50_000).text,
    }
    text, _ = run(DEMO, request, tools)
    review = parse_review(text, {PATH})
    assert (review.outcome, review.problems) == (ParseOutcome.OK, ())
    assert {(claim.short_id, claim.state) for claim in review.carried} == {
        ("F7", CarriedState.OPEN),
        ("F8", CarriedState.FIXED),
    }
    assert {item.short_id for item in review.judged} == {None, "F7"}
    refs = [ref for item in review.judged for ref in item.refs]
    assert sorted(refs) == ["general-1", "general-2", "general-3"]
    assert {item.finding.title for item in review.judged} == TITLES
    risky = [item.finding.title for item in review.judged if item.finding.production_risk]
    assert set(risky) == TITLES - {"Query without a limit"}


def test_a_clean_answer_is_read_as_clean() -> None:
    """Nothing found is said so that it can't be taken for nothing answered."""
    parsed = parse_findings("<findings/>", "general", {PATH})
    assert (parsed.outcome, parsed.findings) == (ParseOutcome.OK, ())
    request = body(system=system("coordinator"), tools=None)
    text, _ = run(DEMO, request, {})
    assert parse_review(text, {PATH}).outcome is ParseOutcome.OK


def test_the_product_reads_the_fix_report_whole() -> None:
    """Fixed and declined come with their ids and a summary."""
    known = {"id": "F1", "path": PATH, "title": "Query without a limit"}
    unknown = known | {"id": "F2", "title": "Something else"}
    request = body(
        system=system("fixer"),
        messages=[{"role": "user", "content": named("fix_task", known, unknown)}],
        tools=[tool("read_file"), tool("edit_file")],
    )
    tools = {
        "read_file": lambda _: numbered_file(FILES[PATH].encode(), 1, None, 50_000).text,
        "edit_file": lambda _: "edited",
    }
    report = parse_fix_report(run(DEMO, request, tools)[0])
    assert report.outcome is ParseOutcome.OK
    assert [key for key, _ in report.fixed] == ["F1"]
    assert [key for key, _ in report.declined] == ["F2"]
    assert report.summary


@pytest.mark.parametrize(
    ("files", "withheld", "expected"),
    [
        pytest.param({"a.py": "x = 1\n"}, None, Reading.WHOLE, id="whole"),
        pytest.param({"a.py": ""}, None, Reading.WHOLE, id="empty"),
        pytest.param({"a.py": "x" * 1_000 + "\n" + "y\n" * 30_000}, None, Reading.PART, id="long"),
        pytest.param({}, None, Reading.MISSING, id="missing"),
        pytest.param({"a.py": "\0"}, None, Reading.REFUSED, id="binary"),
        pytest.param({"a.py": "x"}, "*.py", Reading.REFUSED, id="withheld"),
    ],
)
async def test_what_the_real_tool_answers_is_understood(
    files: dict[str, str], withheld: str | None, expected: Reading
) -> None:
    """The reading tool's own words tell a missing file from a refused and a cut one."""
    workspace = Workspace(Tree(files), Path("/nonexistent"), {}, lambda _: withheld)
    try:
        answer = await workspace.read_file("a.py")
    except ToolError as error:
        answer = f"error: {error}"
    exchange = Exchange("read_file", {"path": "a.py"}, answer, is_error=False)
    assert reading_of(exchange) is expected
