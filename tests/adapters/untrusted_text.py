"""`untrusted-text`: strangers' text as it stands in a prompt, or as a model reads code."""

from __future__ import annotations

from pathlib import Path

from app.agents.numbered import numbered_patch
from app.agents.sanitise import untrusted
from app.agents.workspace import ANSWER_CHARS
from app.domain.findings import Location
from app.git.diff import parse_diff
from app.review.anchors import anchor
from app.review.direction_marks import direction_marks
from tests.adapters.case import KNOWN, Case, compare_text, only_knows

BEYOND = 10_000


async def check(case: Case, _: Path) -> None:
    only_knows(case.expect, "quote_round_trip", "finding_about", *KNOWN)
    for text in case.input["texts"]:
        is_code = case.input["field"] == "diff"
        compare_text(_shown(text) if is_code else untrusted(text), case.expect)
        if about := case.expect.get("finding_about"):
            found = direction_marks(parse_diff(_diff(text)).files)
            assert any(about in item.finding.title.lower() for item in found), found
        if trip := case.expect.get("quote_round_trip"):
            place = anchor(Location("f", BEYOND), parse_diff(_diff(text)), trip["quote"])
            assert place is not None
            assert place.line == trip["finds_added_line"]


def _diff(text: str) -> bytes:
    lines = [line for line in text.split("\n") if line]
    body = "".join(line if line[0] in "+-" else f" {line}" for line in lines)
    count = len(lines)
    return f"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -0,0 +1,{count} @@\n{body}\n".encode()


def _shown(text: str) -> str:
    return numbered_patch(_diff(text), ANSWER_CHARS).text
