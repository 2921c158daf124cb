"""`compare`: a pull request that was reviewed has another head."""

from __future__ import annotations

import re
from pathlib import Path

from tests.adapters.case import Case, only_knows
from tests.adapters.page import Page, open_page, who
from tests.review.story import BASE


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(case.expect, "files_reviewed", "model_runs")
    files = dict.fromkeys(case.input["pull_request_files"], b"x = 1\n")
    changed = dict.fromkeys(case.input["content_changed_since_last_review"], b"x = 2\n")
    others = {path: b"y = 1\n" for path in case.input.get("compare_files", ()) if path not in files}
    async with open_page(tmp_path) as page:
        page.has(files)
        await page.review()
        page.story.model.tasks.clear()
        _moves(page, {**files, **changed}, others)
        await page.story.review(who("author-1"), action="synchronize")
        prompts = [task.prompt for task in page.story.model.tasks]
        head = page.story.pull.head_sha
        run = await page.story.last_run()
    read = {path for text in prompts for path in re.findall(r'<file path="([^"]+)"', text)}
    assert run.head_sha == head
    assert sorted(read) == case.expect["files_reviewed"]
    assert len(prompts) == case.expect.get("model_runs", len(prompts))


def _moves(page: Page, files: dict[str, bytes], others: dict[str, bytes]) -> None:
    """Other people's work is merged into the base, and the branch now stands on that."""
    story = page.story
    base = story.git.commit({**BASE, **others}, parent=story.git.tip()) if others else None
    base = base or story.git.tip()
    ref = f"refs/pull/{story.number}/head"
    head = story.git.commit({**BASE, **others, **files}, parent=base, ref=ref)
    story.change(base_sha=base, head_sha=head)
