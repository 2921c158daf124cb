"""From a signed webhook to a review on the page: the running product over real HTTP and real git.

The demo tells the long stories. Here is one pull request that a person repairs, in a repository
whose policy file is broken.
"""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from app.cli.demo.report import Narrator
from app.cli.demo.stage import AUTHOR, MAINTAINER, REPOSITORY, Props, Stage
from app.sandbox.model import load_story_files
from loop_guards import FindingStatus

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SEARCH = "app/api/notes/search.py"
BROKEN = b"human_prs: gate\nmode: sideways\n"
REPAIRED = b'"""Search notes."""\n\n\ndef search_notes() -> list[str]:\n    return []\n'


async def test_a_person_repairs_what_was_found() -> None:
    """Reviewed inline, repaired by a push, resolved: one status comment, one check a head.

    The broken policy is named by line and key in the review, and does not stop it.
    """
    narrator = Narrator(Console(file=io.StringIO(), width=160))
    async with Stage(Props(), narrator) as stage:
        github = stage.github
        await github.push(REPOSITORY, "main", {".github/mergeward.yml": BROKEN}, author=MAINTAINER)
        await github.push(REPOSITORY, "search", load_story_files("story1"), author=AUTHOR)
        opened = await github.open_pull_request(
            REPOSITORY, author=AUTHOR, head="search", title="Search"
        )
        await stage.settle()
        first = stage.pull(opened.number)
        [review] = first.reviews
        assert (review.state, review.commit_id) == ("COMMENTED", first.head_sha)
        assert "mergeward.yml line 2: mode: " in review.body
        assert [thread.path for thread in first.threads] == [SEARCH] * 3
        [check] = first.checks
        assert (check.status, check.conclusion) == ("completed", "neutral")

        await github.push(REPOSITORY, "search", {SEARCH: REPAIRED}, author=AUTHOR)
        await stage.settle()
        second = stage.pull(opened.number)
        rows = await stage.findings_of(opened.number)
        assert [row.status for row in rows] == [FindingStatus.FIXED] * 3
        assert all(thread.resolved_by == "mergeward[bot]" for thread in second.threads)
        assert [check.conclusion for check in second.checks] == ["success"]
        assert (len(second.reviews), len(second.comments)) == (2, 1)
        assert [run.round_number for run in await stage.rounds_of(opened.number)] == [1, 2]
