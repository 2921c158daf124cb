"""Reviews that do not start, or end without a verdict: said once, with the reason, and stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from app.agents.port import AgentTask
from app.domain.jobs import JobState
from app.domain.pull_request import PullRequestState
from app.domain.runs import AgentName, RunState, Trigger
from app.errors import ForgeForbidden, ForgeRejected, ForgeUnavailable
from app.jobs.ledger import request_cancel
from app.jobs.requests import pull_request_subject
from app.jobs.retry import MAX_OUTAGE_ATTEMPTS
from app.store.tables import FixTask, PullRequestRow
from loop_guards import Severity, TaskState
from tests.review.story import (
    BASE,
    MACHINE,
    NOTHING,
    PLANTED,
    SEARCH,
    Story,
    finding,
    findings,
    open_fix,
)
from tests.store.rows import REPOSITORY

HEAD = {**BASE, SEARCH: PLANTED}
STARTED = "check in_progress: Reviewing"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"draft": True}, "draft", id="a draft"),
        pytest.param({"labels": ("mergeward:skip",)}, "skip_label", id="the label"),
    ],
)
async def test_a_skip_says_why(story: Story, changes: dict[str, Any], reason: str) -> None:
    """One check with the reason, one decision with its trace, one run; no model, nothing else."""
    story.open_pull(HEAD, **changes)
    await story.review()
    assert story.page() == [f"check neutral: Skipped: {reason}"]
    assert await story.decisions() == [("review_start", "skip", reason)]
    [run] = await story.runs()
    assert (run.state, run.reason, run.charged_at) == (RunState.SKIPPED, reason, None)
    assert story.model.calls == []


async def test_what_needs_no_words_gets_none(story: Story) -> None:
    """Reviewed before, or closed: stored with the reason, and the page stays as it is."""
    story.open_pull(HEAD)
    await story.review()
    story.page()
    await story.review(action="reopened")
    story.change(state=PullRequestState.CLOSED)
    await story.review(action="synchronize")
    assert story.page() == []
    assert story.model.calls == ["coordinator", "general"]
    assert (await story.decisions())[2:] == [
        ("review_start", "skip", "already_reviewed"),
        ("review_start", "skip", "closed"),
    ]
    assert [(run.state, run.reason) for run in (await story.runs())[1:]] == [
        (RunState.SKIPPED, "already_reviewed"),
        (RunState.SKIPPED, "closed"),
    ]


async def test_machines_alone_do_not_keep_reviews_going(story: Story) -> None:
    """Three rounds that machines caused, then a pause; a person's push ends it."""
    story.open_pull(HEAD, author=MACHINE)
    await story.review(MACHINE)
    row = await story.row()
    assert (row.is_bot, row.bot_signal, row.machine_rounds) == (True, "account_type", 1)
    async with story.store.write() as session:
        (await session.get_one(PullRequestRow, row.id)).machine_rounds = 3
    story.page()
    story.push({**HEAD, "README.md": b"one\n"})
    await story.review(MACHINE, action="synchronize")
    assert story.page() == ["check neutral: Skipped: ping_pong"]
    story.push({**HEAD, "README.md": b"two\n"})
    await story.review(action="synchronize")
    assert story.page()[0] == STARTED
    assert (await story.row()).machine_rounds == 0


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        pytest.param({**BASE, "package-lock.json": b"{}\n"}, "package-lock.json", id="lock file"),
        pytest.param(BASE, "Nothing in this change", id="no change at all"),
    ],
)
async def test_nothing_to_read_costs_nothing(
    story: Story, tree: dict[str, bytes], said: str
) -> None:
    """Everything was left out: no model is asked, and the check says what and why."""
    story.open_pull(tree)
    await story.review()
    assert story.page() == ["check neutral: Nothing to review"]
    assert said in story.check.summary
    run = await story.last_run()
    assert (run.state, run.reason, run.charged_at) == (RunState.SKIPPED, "nothing_to_review", None)
    assert story.model.calls == []


async def test_a_fix_with_nothing_to_read_asks_a_person(story: Story) -> None:
    """No round can judge it, so its task does not wait for one in silence."""
    await open_fix(story, Severity.CRITICAL, tree={**BASE, "package-lock.json": b"{}\n"})
    await story.review(actor=None)
    assert story.page() == [
        "comment escalation-1",
        "label mergeward:needs-human",
        "check action_required: Nothing to review",
    ]
    [task] = await story.tasks()
    assert (task.state, task.escalation_reason) == (TaskState.ESCALATED, "unavailable")


def pushes(story: Story) -> None:
    story.push({**HEAD, "README.md": b"meanwhile\n"})


def closes(story: Story) -> None:
    story.change(state=PullRequestState.CLOSED)


@pytest.mark.parametrize("meanwhile", [pushes, closes])
async def test_an_overtaken_run_publishes_nothing(
    story: Story, meanwhile: Callable[[Story], None]
) -> None:
    """The head moves, or the pull request closes, while models think: paid for, and not said."""
    story.open_pull(HEAD)

    async def overtakes(task: AgentTask) -> str:
        meanwhile(story)
        return await story.model.judge(task)

    story.model.answers = {
        AgentName.GENERAL: [findings(finding())],
        AgentName.COORDINATOR: [overtakes],
    }
    await story.review()
    assert story.page() == [STARTED, "check cancelled: Superseded"]
    run = await story.last_run()
    assert (run.state, run.reason, run.model_calls) == (RunState.CANCELLED, "superseded", 2)
    assert await story.spent() == (2, 200)
    assert await story.findings() == []


async def test_a_cancelled_job_ends_its_run(story: Story) -> None:
    """Told to stop while it runs: the run is over, what it used is booked, its check is ended."""
    story.open_pull(HEAD)

    async def stops(task: AgentTask) -> str:
        async with story.store.write() as session:
            subject = pull_request_subject(REPOSITORY, story.number)
            await request_cancel(session, subject=subject, reason="closed", now=story.clock.now())
        return NOTHING

    story.model.answers = {AgentName.GENERAL: [stops]}
    await story.review()
    assert story.page() == [STARTED, "check cancelled: Superseded"]
    run = await story.last_run()
    assert (run.state, run.reason) == (RunState.CANCELLED, "closed")
    assert [job.state for job in await story.jobs()] == [JobState.CANCELLED]
    assert story.model.calls == ["coordinator", "general"]
    assert await story.spent() == (1, 100)


DENIED = ForgeForbidden("the App may not write checks: grant `checks: write`", status=403)


async def test_a_job_that_fails_for_good_leaves_a_trace(story: Story) -> None:
    """In the middle of a review: the run failed, and the check asks for action with the reason."""
    story.open_pull(HEAD)
    story.forge.fail_next("ensure_check_run", DENIED)
    await story.review()
    assert [job.state for job in await story.jobs()] == [JobState.FAILED]
    assert story.page() == ["check action_required: Not reviewed: the review failed"]
    run = await story.last_run()
    assert (run.state, run.reason) == (RunState.FAILED, str(DENIED))
    assert story.model.calls == []


async def test_a_forge_that_stays_away_is_asked_again_then_no_more(story: Story) -> None:
    """Also a job that never got as far as a run leaves one, and escalates the fix that waited."""
    await open_fix(story, Severity.CRITICAL, tree=HEAD)
    await story.review(actor=None)
    story.page()
    async with story.store.write() as session:
        (await session.get_one(FixTask, 1)).state = TaskState.REVIEWING
    for _ in range(MAX_OUTAGE_ATTEMPTS):
        story.forge.fail_next("clone_remote", ForgeUnavailable("no answer"))
    await story.ask(None)
    await story.work()
    await story.retry(MAX_OUTAGE_ATTEMPTS - 1)
    run = await story.last_run()
    assert (run.state, run.reason) == (RunState.FAILED, "no answer")
    assert story.page() == [
        "check action_required: Not reviewed: the review failed",
        f"comment escalation-{run.id}",
        "label mergeward:needs-human",
    ]
    assert (await story.tasks())[0].state is TaskState.ESCALATED


async def test_a_review_that_can_not_be_published_is_not_silent(story: Story) -> None:
    """Judged, but the forge refuses the page for good: the check says so and is not green."""
    story.open_pull(HEAD)
    story.forge.fail_next("ensure_review", ForgeRejected("a line is not part of the diff"))
    await story.review()
    assert story.page() == [STARTED, "check action_required: Not published"]
    assert (await story.last_run()).state is RunState.DONE
    assert story.model.calls == ["coordinator", "general"]


async def test_a_command_reviews_a_draft(story: Story) -> None:
    """A person asks in words: a draft is reviewed all the same."""
    story.open_pull(HEAD, draft=True)
    await story.review(trigger=Trigger.COMMAND)
    assert story.page()[-1] == "check success: Approved: no findings"


async def test_a_refused_anchor_costs_its_place_and_nothing_else(story: Story) -> None:
    """The forge refuses a whole review for one comment: once more without any, everything in the
    body, the verdict as it was."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    story.forge.fail_next("ensure_review", ForgeRejected("a line is not part of the diff"))
    await story.review()
    assert story.page() == [
        STARTED,
        "review COMMENT []",
        "status",
        "check neutral: Significant concerns: 1 critical",
    ]
    assert "The term reaches the statement." in story.bodies[-1]
    assert story.open_threads == []
    assert story.model.calls == ["coordinator", "general"]


async def test_a_second_refusal_is_the_last(story: Story) -> None:
    """Without anchors it is refused too: nothing is tried a third time, and the check says so."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    for _ in range(2):
        story.forge.fail_next("ensure_review", ForgeRejected("no"))
    await story.review()
    assert story.page() == [STARTED, "check action_required: Not published"]


async def test_a_death_after_a_refused_anchor_repeats_nothing(story: Story) -> None:
    """Whoever goes on publishes without anchors, once."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    story.forge.fail_next("ensure_review", ForgeRejected("a line is not part of the diff"))

    tries: list[int] = []

    async def dies_at_the_second() -> None:
        tries.append(1)
        if len(tries) == 2:
            raise asyncio.CancelledError

    story.forge.before_review = dies_at_the_second
    await story.review()
    await story.recover()
    assert len(tries) == 3
    assert story.shown()["reviews"] == [("COMMENTED", 0)]
