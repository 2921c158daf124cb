"""`comment-body`: text of a model or a user on its way to a page."""

from __future__ import annotations

from pathlib import Path

from app.agents.markdown import balance_fences
from app.agents.sanitise import outgoing
from tests.adapters.case import KNOWN, Case, compare_text, only_knows


async def check(case: Case, _: Path) -> None:
    only_knows(case.expect, "posted_body_contains", "fences_balanced", *KNOWN)
    for body in case.input.get("bodies", [case.input.get("body")]):
        posted = outgoing(body)
        compare_text(posted, case.expect)
        for words in case.expect.get("posted_body_contains", ()):
            assert words in posted, (words, posted)
        if case.expect.get("fences_balanced"):
            assert balance_fences(posted) == posted
