"""What a check run tells while its reviewers are at work (app/review/progress.py)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.port import AgentTask, ReviewerDone
from app.domain.effects import CheckStatus
from app.domain.policy import Policy
from app.domain.runs import AgentName
from app.errors import ForgeRateLimited
from app.review.plan import plan_review
from app.review.progress import is_due, progress_check
from tests.review.story import BASE, PLANTED, SEARCH, Story, finding, findings

PLAN = replace(
    plan_review([], Policy(), ()),
    reviewers=(AgentName.SECURITY, AgentName.CODE_QUALITY),
)
SECURITY = ReviewerDone("security", findings=1)
IN_PART = ReviewerDone("code_quality", findings=0, reason="timeout")


@pytest.mark.parametrize(
    ("told", "elapsed", "due"),
    [
        pytest.param(0, 44.9, False, id="a-small-review-is-done-before"),
        pytest.param(0, 45.0, True, id="first"),
        pytest.param(1, 149.0, False, id="not-at-once-again"),
        pytest.param(1, 150.0, True, id="second"),
        pytest.param(2, 449.0, False, id="then-rarely"),
        pytest.param(2, 450.0, True, id="third"),
        pytest.param(3, 750.0, True, id="fourth"),
    ],
)
def test_when(told: int, elapsed: float, due: bool) -> None:
    """Each time is a request of the installation's."""
    assert is_due(told, elapsed) is due


@given(st.lists(st.floats(0, 240), max_size=400))
def test_four_minutes_are_two_requests(looks: list[float]) -> None:
    """Whatever events there are: the bound of a medium pull request counts on it."""
    told = 0
    for elapsed in sorted(looks):
        told += is_due(told, elapsed)
    assert told <= 2


@pytest.mark.parametrize(
    ("done", "title", "said"),
    [
        pytest.param({}, "Reviewing", ["| security | reading |"], id="begun"),
        pytest.param(
            {"security": SECURITY},
            "Reviewing: 1 of 2 reviewers are done",
            ["| security | done, 1 finding to judge |", "| code_quality | reading |"],
            id="one-done",
        ),
        pytest.param(
            {"security": SECURITY, "code_quality": IN_PART},
            "Reviewing: 2 of 2 reviewers are done",
            ["| code_quality | done in part, 0 findings to judge |", "The coordinator is judging"],
            id="all-done",
        ),
    ],
)
def test_what(done: dict[str, ReviewerDone], title: str, said: list[str]) -> None:
    """Tier and reviewers from the start; no word of a model, whose findings nobody judged yet."""
    check = progress_check(5, "a" * 40, PLAN, done)
    assert (check.title, check.status) == (title, CheckStatus.IN_PROGRESS)
    assert "A trivial review is under way." in check.summary
    for text in said:
        assert text in check.summary


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        pytest.param(False, 1, id="told"),
        pytest.param(True, 0, id="refused"),
    ],
)
async def test_a_long_review_is_told_of(story: Story, refused: bool, told: int) -> None:
    """The same check run changes; where the forge refuses, the review goes on without."""

    async def slow(task: AgentTask) -> None:
        if task.agent is AgentName.SECURITY:
            story.pass_time(60)
            if refused:
                story.forge.fail_next("ensure_check_run", ForgeRateLimited("no", retry_after=60))

    story.model.before = slow
    story.model.answers = {AgentName.SECURITY: [findings(finding())]}
    story.open_pull({**BASE, SEARCH: PLANTED, "app/auth/login.py": PLANTED})
    await story.review()
    page = story.page()
    assert sum(line.startswith("check in_progress: Reviewing") for line in page) == 1 + told
    assert page[-1] == "check neutral: Significant concerns: 1 critical"
    assert len({check.told.id for check in story.world.checks}) == 1


async def test_shadow_tells_nothing(story: Story) -> None:
    """Nothing is on the page, whatever it takes."""

    async def slow(_: AgentTask) -> None:
        story.pass_time(60)

    story.policy("mode: shadow\n")
    story.model.before = slow
    story.open_pull({**BASE, SEARCH: PLANTED})
    await story.review()
    assert story.page() == []
