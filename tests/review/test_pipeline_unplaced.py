"""Comments that the forge takes and shows nobody: what they say is said in the review's body."""

from __future__ import annotations

import pytest

from app.domain.jobs import JobState
from app.domain.runs import AgentName
from app.errors import ForgeRejected
from app.forges.recording.world import HiddenComment
from tests.review.story import BASE, NOTHING, Story, finding, findings

HEAD = {**BASE, "m.py": b"x = 1\n" * 3}
THREE = findings(
    *(
        finding(path="m.py", line=n, title=f"Finding {n}", body=f"What happens at {n}.")
        for n in (1, 2, 3)
    )
)


def told(story: Story) -> list[int]:
    """Whose text stands in the body, once each."""
    [body] = story.bodies
    counts = [body.count(f"What happens at {n}.") for n in (1, 2, 3)]
    assert max(counts) <= 1
    return [n for n, count in zip((1, 2, 3), counts, strict=True) if count]


async def test_all_at_their_lines_need_no_second_look(story: Story) -> None:
    """The body is written once."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [THREE]}
    await story.review()
    assert told(story) == []
    assert "review edited" not in story.page()


@pytest.mark.parametrize(
    "deaths",
    [
        pytest.param([], id="nothing-else-happens"),
        pytest.param([("ensure_review", True)], id="died-with-the-review-posted"),
        pytest.param([("edit_review", False)], id="died-before-the-body"),
        pytest.param([("edit_review", True)], id="died-after-the-body"),
        pytest.param([("ensure_comment", False)], id="died-later"),
    ],
)
async def test_what_got_no_line_is_said_in_the_body(
    story: Story, deaths: list[tuple[str, bool]]
) -> None:
    """Exactly once, whenever the worker dies; the verdict is what it was."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [THREE]}
    story.world.hidden_comments = [HiddenComment("m.py", 2, kept=False)]
    story.forge.kills |= set(deaths)
    await story.review()
    if deaths:
        assert not story.forge.kills
        await story.recover()
    assert told(story) == [2]
    assert story.open_threads == [("m.py", 1), ("m.py", 3)]
    assert [(row.short_id, row.thread_id is None) for row in await story.findings()] == [
        ("F1", False),
        ("F2", True),
        ("F3", False),
    ]
    assert story.check.title == "Significant concerns: 3 critical"


async def test_a_thread_that_nobody_sees_is_resolved_like_any_other(story: Story) -> None:
    """Where conversations must be resolved before a merge, one without a line would wait for ever:
    it is known, and closed once its finding is fixed."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [THREE, NOTHING]}
    story.model.carried = {"F2": "fixed"}
    story.world.hidden_comments = [HiddenComment("m.py", 2)]
    await story.review()
    assert told(story) == [2]
    assert story.open_threads == [("m.py", 1), ("m.py", None), ("m.py", 3)]
    story.push({**HEAD, "m.py": b"x = 1\ny = 1\nx = 1\n"})
    await story.review(action="synchronize")
    assert story.open_threads == [("m.py", 1), ("m.py", 3)]


async def test_a_refused_body_is_not_taken_for_a_refused_anchor(story: Story) -> None:
    """The review is on the page, so that publishing it without anchors would mend nothing: it is
    said that something is missing."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [THREE]}
    story.world.hidden_comments = [HiddenComment("m.py", 2)]
    story.forge.fail_next("edit_review", ForgeRejected("no"))
    await story.review()
    assert story.page()[2:] == ["check action_required: Not published"]
    assert [job.state for job in await story.jobs()] == [JobState.FAILED]
