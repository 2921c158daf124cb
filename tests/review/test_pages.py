"""What people read of a round, whole: a golden file for each verdict, and for what is special.

After a wanted change: `MERGEWARD_WRITE_GOLDEN=1 pytest tests/review/test_pages.py`, then read the
difference as somebody who has never heard of Mergeward.
"""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest

from app.domain.coverage import Coverage, CoverageEntry, CoverageState
from app.domain.findings import Location
from app.domain.runs import Usage
from app.review.render import (
    NextStep,
    ReviewView,
    check_summary,
    escalation_body,
    escalation_rule,
    headline,
    inline_body,
    review_body,
    status_body,
)
from loop_guards import NextReason, Severity, Verdict
from tests.review.factories import finding, view

GOLDEN = Path(__file__).parent / "golden"
SEARCH = "app/api/notes/search.py"

INJECTION = finding(
    1,
    location=Location(SEARCH, 14, 16),
    title="Search term in the SQL text",
    body="`q` reaches the statement as text: `/search?q=' OR 1=1 --` lists every user's notes.",
    production_risk="Anybody who is signed in reads all notes.",
)
UNBOUNDED = finding(
    2,
    location=Location(SEARCH, 22, 22),
    severity=Severity.WARNING,
    category="performance",
    title="All notes are loaded for one page",
    body="`list_notes()` has no limit; an account with 50,000 notes takes the worker's memory.",
)
NAMING = finding(
    3,
    location=Location("README.md", 40, 40),
    severity=Severity.SUGGESTION,
    category="documentation",
    title="The new parameter is not described",
    body="`limit` is missing in the table of parameters.",
)
READ = Coverage(
    (
        CoverageEntry(SEARCH, CoverageState.REVIEWED, ""),
        CoverageEntry("README.md", CoverageState.REVIEWED, ""),
        CoverageEntry("poetry.lock", CoverageState.SKIPPED, "lock_file"),
    )
)
IN_PART = Coverage(
    (
        *READ.entries,
        CoverageEntry("app/generated/big.sql", CoverageState.TOO_LARGE, "larger_than_window"),
    )
)
USED = Usage(
    model_calls=14,
    input_tokens=6_200,
    cache_read_tokens=81_000,
    cache_write_tokens=9_000,
    output_tokens=4_100,
    cost_usd=Decimal("0.1762"),
)
NOTICE = "This repository has used 80 % of the day's cap of $5 for this repository."


def page(**changes: object) -> ReviewView:
    """A round of two files by six reviewers."""
    return view(coverage=READ, usage=USED, **changes)


PAGES: dict[str, ReviewView] = {
    "approved": page(),
    "approved_with_comments": page(
        verdict=Verdict.APPROVED_WITH_COMMENTS,
        summary="A small, well tested change.",
        fresh=(NAMING,),
        inline=frozenset({"F3"}),
    ),
    "minor_issues": page(
        verdict=Verdict.MINOR_ISSUES,
        summary="The search works; large accounts will feel it.",
        fresh=(UNBOUNDED, NAMING),
        inline=frozenset({"F2"}),
        next_step=NextStep.HANDOFF_AT_MERGE,
    ),
    "significant_concerns": page(
        verdict=Verdict.SIGNIFICANT_CONCERNS,
        summary="The search can be made to list other people's notes.",
        fresh=(INJECTION, UNBOUNDED),
        inline=frozenset({"F1", "F2"}),
        next_step=NextStep.HANDOFF_AT_MERGE,
    ),
    "changes_requested": page(
        verdict=Verdict.CHANGES_REQUESTED,
        summary="The statement is still put together from text.",
        open_before=(INJECTION,),
        fixed=(UNBOUNDED,),
        blocking=frozenset({"F1"}),
        round_number=2,
        allowance=5,
        next_step=NextStep.FIXER_TURN,
    ),
    "escalated": page(
        verdict=Verdict.ESCALATED,
        summary="Five rounds have not removed the injection.",
        open_before=(INJECTION,),
        blocking=frozenset({"F1"}),
        round_number=5,
        allowance=5,
        next_step=NextStep.HUMAN,
    ),
    "in_part": view(
        coverage=IN_PART,
        usage=USED,
        failed_reviewers=("performance",),
        summary="What was read is fine.",
    ),
    "re_review": page(
        verdict=Verdict.APPROVED_WITH_COMMENTS,
        summary="The injection is gone.",
        open_before=(NAMING,),
        fixed=(INJECTION,),
        settled=(UNBOUNDED,),
        round_number=2,
        notes=(NOTICE,),
    ),
}


def told(name: str, seen: ReviewView) -> str:
    """All texts of the round, each under the name of its place."""
    parts = {
        "check run, title": headline(seen),
        "check run, summary": check_summary(seen),
        "review": review_body(seen),
        **{
            f"inline comment, {item.short_id}": inline_body(item, "")
            for item in seen.fresh
            if item.short_id in seen.inline
        },
        "status comment": status_body(seen),
    }
    if seen.next_step is NextStep.HUMAN:
        rule = escalation_rule(NextReason.CAP)
        parts["comment of the escalation"] = escalation_body(seen, rule, "acme/maintainers")
    return f"# {name}\n\n" + "\n\n".join(f"=== {where}\n\n{text}" for where, text in parts.items())


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str) -> None:
    """Nobody changes what people read without reading it."""
    file, text = GOLDEN / f"{name}.md", told(name, PAGES[name]) + "\n"
    if os.environ.get("MERGEWARD_WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_every_verdict_has_its_page() -> None:
    """A new one is read before it is published."""
    assert {seen.verdict for seen in PAGES.values()} == set(Verdict)
    assert {file.stem for file in GOLDEN.glob("*.md")} == set(PAGES)
