"""`comments`: what one review writes on a page."""

from __future__ import annotations

from pathlib import Path

from tests.adapters.case import Case, only_knows
from tests.adapters.page import open_page
from tests.review.story import REPO


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(case.expect, "texts_with_full_findings")
    assert not case.input["comments"], "a page with comments is not played yet"
    count = case.input["run"]["findings"]
    bodies = [f"What happens at {n} is a failure." for n in range(1, count + 1)]
    async with open_page(tmp_path) as page:
        page.has({"m.py": b"x = 1\n" * count})
        # A finding without a line stands in a text of the conversation, wherever that is.
        await page.review(
            *({"path": "m.py", "line": "", "title": body[:20], "body": body} for body in bodies)
        )
        pull = page.story.world.pull(REPO, page.story.number)
    texts = [review.told.body for review in pull.reviews]
    texts += [comment.body for comment in pull.comments]
    texts += [comment.body for thread in pull.threads for _, comment in thread.comments]
    texts += [page.story.check.summary]
    full = [text for text in texts if all(body in text for body in bodies)]
    assert len(full) == case.expect["texts_with_full_findings"]
