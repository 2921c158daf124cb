"""Effects can't be built in a shape that GitHub would refuse."""

from __future__ import annotations

import pytest

from app.domain.effects import CheckAction, CheckConclusion, CheckStatus, SetCheckRun

ACTION = CheckAction("Queue fixes", "Fix what was found", "queue")


@pytest.mark.parametrize(
    ("status", "conclusion"),
    [
        pytest.param(CheckStatus.COMPLETED, None, id="no conclusion"),
        pytest.param(CheckStatus.IN_PROGRESS, CheckConclusion.SUCCESS, id="too early"),
    ],
)
def test_status_and_conclusion(status: CheckStatus, conclusion: CheckConclusion | None) -> None:
    """GitHub completes a run that has a conclusion, whatever status was sent with it."""
    with pytest.raises(ValueError, match="disagree"):
        SetCheckRun("a" * 40, "1", status, "t", "s", conclusion)


def test_at_most_three_buttons() -> None:
    """A fourth button refuses the whole check run."""
    with pytest.raises(ValueError, match="3 buttons"):
        SetCheckRun("a" * 40, "1", CheckStatus.QUEUED, "t", "s", actions=(ACTION,) * 4)


@pytest.mark.parametrize(
    ("label", "description", "identifier"),
    [
        pytest.param("l" * 21, "d", "i", id="label"),
        pytest.param("l", "d" * 41, "i", id="description"),
        pytest.param("l", "d", "i" * 21, id="identifier"),
    ],
)
def test_short_buttons(label: str, description: str, identifier: str) -> None:
    """GitHub's limits for a button are 20, 40 and 20 characters."""
    with pytest.raises(ValueError, match="longer than GitHub allows"):
        CheckAction(label, description, identifier)
