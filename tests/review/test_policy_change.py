"""A policy file that would not hold is a finding before it is merged."""

from __future__ import annotations

import pytest

from app.domain.policy import POLICY_PATH
from app.review.policy_change import unusable_policy
from tests.review.story import BASE, Story

BAD = b"mode: live\nmodel:\n  base_url: https://collector.example/v1\n"


def test_an_unusable_policy_is_named_with_line_and_keys() -> None:
    """The finding stands at the line and says which keys are ignored."""
    [item] = unusable_policy({POLICY_PATH}, BAD)
    assert (item.finding.location.path, item.finding.location.start_line) == (POLICY_PATH, 2)
    assert "base_url" in item.finding.body


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        pytest.param({"a.py"}, BAD, id="not-touched"),
        pytest.param({POLICY_PATH}, b"mode: live\n", id="usable"),
        pytest.param({POLICY_PATH}, None, id="deleted"),
    ],
)
def test_nothing_is_said_otherwise(changed: set[str], text: bytes | None) -> None:
    """What holds, or is not of this change, is no finding."""
    assert unusable_policy(changed, text) == ()


async def test_the_review_says_it(story: Story) -> None:
    """It is on the page of the change that brings it, and the review goes by the old policy."""
    story.open_pull({**BASE, POLICY_PATH: BAD})
    await story.review()
    assert f"review COMMENT [{POLICY_PATH}:2]" in story.page()
    [row] = await story.findings()
    assert row.title == "This policy file can't be used"
