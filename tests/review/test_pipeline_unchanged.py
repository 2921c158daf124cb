"""A later round reads what has changed since the last one, and only that."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from app.domain.runs import AgentName, RunState, Trigger
from loop_guards import FindingStatus
from tests.review.story import BASE, NOTHING, PLANTED, SEARCH, Story, finding, findings

POLICY = ".github/mergeward.yml"
OLD, NEW = "app/old.py", "app/new.py"
HEAD = {**BASE, SEARCH: PLANTED, OLD: b"a = 1\n"}
PUSHED = {**HEAD, NEW: b"b = 2\n"}
FOUND = findings(finding(severity="warning"))


@pytest.fixture
async def page(story: Story) -> Story:
    """One round has read two files and found F1 in one."""
    story.model.answers = {AgentName.GENERAL: [FOUND, NOTHING]}
    story.open_pull(HEAD)
    await story.review()
    story.page()
    story.model.tasks.clear()
    return story


def read(story: Story) -> dict[str, set[str]]:
    """What each agent of the latest rounds was told to read, by its name."""
    return {
        task.agent.value: set(re.findall(r'<file path="([^"]+)"', task.prompt))
        for task in story.model.tasks
    }


def seen(story: Story) -> set[str]:
    return set(re.findall(r'<seen path="([^"]+)"', story.model.tasks[-1].prompt))


async def test_only_what_was_pushed_is_read(page: Story) -> None:
    """The rest is named as seen; all of it is covered, and the open finding stays."""
    page.push(PUSHED)
    await page.review(action="synchronize")
    assert read(page) == {"general": {NEW}, "coordinator": {NEW}}
    assert seen(page) == {SEARCH, OLD}
    run = await page.last_run()
    assert [entry[0] for entry in run.coverage["entries"]] == [NEW, OLD, SEARCH]
    assert {entry[1] for entry in run.coverage["entries"]} == {"reviewed"}
    assert [(row.short_id, row.status) for row in await page.findings()] == [
        ("F1", FindingStatus.OPEN)
    ]


async def test_seen_patches_can_still_be_read(page: Story) -> None:
    """To judge the others, or to see whether a push broke what was fine."""
    page.push(PUSHED)
    await page.review(action="synchronize")
    folder = max(page.services.runs.iterdir(), key=lambda path: int(path.name))
    assert len(list((folder / "diff").iterdir())) == 3


async def test_a_finding_in_a_seen_file_may_be_raised(page: Story) -> None:
    """A push can break code that it does not touch."""
    late = findings(finding(path=OLD, line=1, title="Now it is called twice"))
    page.model.answers = {AgentName.GENERAL: [late]}
    page.push(PUSHED)
    await page.review(action="synchronize")
    assert [row.path for row in await page.findings()] == [SEARCH, OLD]


@pytest.mark.parametrize("gate", [False, True], ids=["advice", "gate"])
async def test_nothing_new_asks_nobody(story: Story, gate: bool) -> None:
    """The base was merged, or the branch rebased: the verdict goes to the new head, no model runs,
    and no round is charged."""
    story.policy("human_prs: gate\n" if gate else "human_prs: advise\n")
    tree = {**HEAD, POLICY: b"human_prs: gate\n" if gate else b"human_prs: advise\n"}
    story.model.answers = {AgentName.GENERAL: [FOUND], AgentName.CODE_QUALITY: [FOUND]}
    story.open_pull(tree)
    await story.review()
    title = story.check.title
    asked = len(story.model.calls)
    sha = story.git.commit(tree, parent=story.pull.head_sha, ref=f"refs/pull/{story.number}/head")
    story.change(head_sha=sha)
    await story.review(action="synchronize")
    assert len(story.model.calls) == asked
    run = await story.last_run()
    assert (run.state, run.head_sha, run.charged_at) == (RunState.DONE, sha, None)
    assert story.check.title == title
    assert story.check.head_sha == sha
    assert [row.status for row in await story.findings()] == [FindingStatus.OPEN]
    assert len(story.bodies) == (2 if gate else 1)
    story.push({**tree, NEW: b"b = 2\n"})
    await story.review(action="synchronize")
    assert read(story)["coordinator"] == {NEW}


@pytest.mark.parametrize(
    "why",
    [
        pytest.param({"trigger": Trigger.COMMAND}, id="a-person-asks"),
        pytest.param({}, id="another-policy"),
    ],
)
async def test_all_is_read_again_when_it_should_be(page: Story, why: dict[str, Any]) -> None:
    """When a person asks for a review, and when other rules apply."""
    if not why:
        page.policy("instructions: Look at names.\n")
    page.push(PUSHED)
    await page.review(**why)
    assert {SEARCH, OLD, NEW} <= read(page)["coordinator"]


async def test_who_has_read_nothing_reads_all(page: Story) -> None:
    """The push makes it a full review: security was not there before."""
    guarded = {**PUSHED, "app/auth/login.py": b"c = 3\n"}
    page.push(guarded)
    await page.review(action="synchronize")
    assert {SEARCH, OLD, NEW, "app/auth/login.py"} <= read(page)["security"]


async def test_a_round_that_was_not_whole_does_not_count(story: Story) -> None:
    """What nobody could read is read by the next round."""
    story.model.answers = {AgentName.CODE_QUALITY: ["no answer at all"]}
    story.open_pull({**HEAD, "app/auth/login.py": b"c = 3\n"})
    await story.review()
    assert (await story.last_run()).incomplete
    story.model.tasks.clear()
    story.push({**PUSHED, "app/auth/login.py": b"c = 3\n"})
    await story.review(action="synchronize")
    assert {SEARCH, OLD, NEW} <= read(story)["coordinator"]


async def test_lost_commits_are_no_evidence(page: Story) -> None:
    """After a force-push the earlier head may be gone for good: all is read."""
    gone = replace(page.pull, head_sha=page.git.commit(PUSHED, parent=page.git.tip()))
    async with page.store.write() as session:
        run = await session.merge(await page.last_run())
        run.head_sha = "f" * 40
    page.change(head_sha=gone.head_sha)
    page.git.commit(PUSHED, parent=page.git.tip(), ref=f"refs/pull/{page.number}/head")
    await page.review(action="synchronize")
    assert {SEARCH, OLD, NEW} <= read(page)["coordinator"]
