"""No model can be reached: the review waits in the queue and says so."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from app.agents.failback import unanswered
from app.agents.port import AgentErrorKind, AgentFailure
from app.domain.jobs import JobState
from app.domain.runs import AgentName, RunState
from app.errors import AgentError, ModelsUnavailable
from app.review.outage import WAITS_S, next_try
from loop_guards import Severity, TaskState
from tests.review.story import BASE, PLANTED, SEARCH, START, Story, open_fix

HEAD = {**BASE, SEARCH: PLANTED}
DOWN = AgentFailure(AgentErrorKind.OVERLOADED, "529")
DENIED = AgentFailure(AgentErrorKind.AUTH, "401")


def down(story: Story, failure: AgentFailure = DOWN) -> None:
    agents = ("coordinator", "general", "code_quality", "security", "documentation")
    story.model.answers = {AgentName(agent): [failure] for agent in agents}


@pytest.mark.parametrize(
    ("reasons", "kind"),
    [
        (["overloaded"], ModelsUnavailable),
        (["rate_limited", "breaker_open", "no_start"], ModelsUnavailable),
        (["overloaded", "auth"], AgentError),
        (["overloaded", "malformed"], AgentError),
        (["timeout"], AgentError),
        ([], AgentError),
    ],
)
def test_only_what_a_pause_may_cure_is_waited_for(
    reasons: list[str], kind: type[AgentError]
) -> None:
    """A wrong key, or an answer that nobody can read, is no outage."""
    assert type(unanswered("no", reasons)) is kind


def test_waits_grow_and_end() -> None:
    """Five minutes, twenty, an hour; then it has failed."""
    tries = [next_try(waited, START) for waited in range(4)]
    assert [(one.at - START).total_seconds() for one in tries[:3] if one] == list(WAITS_S)
    assert [(one.number, one.most) for one in tries[:3] if one] == [(2, 4), (3, 4), (4, 4)]
    assert tries[3] is None


async def due(story: Story) -> datetime | None:
    waiting = [job for job in await story.jobs() if job.state is JobState.QUEUED]
    return waiting[-1].run_at if waiting else None


async def test_the_review_waits_and_then_goes_on(story: Story) -> None:
    """The check says when; at that moment it is tried again, and what it finds is published."""
    story.policy("human_prs: gate\n")
    down(story)
    story.open_pull(HEAD)
    await story.review()
    at = await due(story)
    assert at is not None
    assert story.check.title == f"Waiting for models: next try about {at:%H:%M} UTC"
    assert (story.check.status, story.check.conclusion) == ("queued", None)
    assert "waits in the queue" in story.check.summary
    assert (await story.last_run()).state is RunState.FAILED
    story.model.answers = {}
    await story.work()
    assert len(await story.runs()) == 1
    story.clock.move_to(at + timedelta(seconds=1))
    await story.work()
    assert (await story.last_run()).state is RunState.DONE
    assert story.check.title == "Approved: no findings"
    assert await due(story) is None
    first, second = story.world.checks
    assert (first.told.conclusion, second.told.conclusion) == ("cancelled", "success")


async def test_an_outage_without_end_is_bounded(story: Story) -> None:
    """So many tries and no more, by our own count or by the guards' of machine rounds."""
    down(story)
    story.open_pull(HEAD)
    await story.review()
    for _ in range(10):
        at = await due(story)
        if at is None:
            break
        story.clock.move_to(at + timedelta(seconds=1))
        await story.work()
    assert await due(story) is None
    charged = [run for run in await story.runs() if run.charged_at is not None]
    assert len(charged) <= len(WAITS_S) + 1
    assert "Not reviewed" in story.check.title or "Skipped" in story.check.title


async def test_a_push_replaces_what_waits(story: Story) -> None:
    """The new head is reviewed; the old one's try finds that there is nothing to do."""
    down(story)
    story.open_pull(HEAD)
    await story.review()
    story.model.answers = {}
    story.push({**HEAD, "more.py": b"y = 1\n"})
    await story.review(action="synchronize")
    at = await due(story)
    asked = len(story.model.calls)
    if at is not None:
        story.clock.move_to(at + timedelta(seconds=1))
        await story.work()
    assert len(story.model.calls) == asked


async def test_a_wrong_key_is_not_waited_for(story: Story) -> None:
    """An operator has to act; that is said at once."""
    down(story, DENIED)
    story.open_pull(HEAD)
    await story.review()
    assert story.check.title == "Not reviewed: the review failed"
    assert await due(story) is None


async def test_on_a_fix_a_person_is_asked(story: Story) -> None:
    """A round that says nothing escalates; machines do not go on by themselves."""
    await open_fix(story, Severity.WARNING, tree={**BASE, SEARCH: PLANTED + b"# x\n"})
    down(story)
    await story.review()
    (task,) = await story.tasks()
    assert task.state is TaskState.ESCALATED
    assert await due(story) is None
