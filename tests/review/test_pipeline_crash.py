"""A worker dies in the middle of a review: another one goes on, and nobody can tell afterwards."""

from __future__ import annotations

import asyncio

import pytest

from app.agents.port import AgentTask
from app.domain.jobs import JobKind, JobState
from app.domain.runs import AgentName, RunState
from app.domain.tasks import LineageState
from app.store.tables import JobStep, Lineage
from loop_guards import FindingStatus, Origin, Severity, TaskState, Verdict
from tests.review.story import (
    BASE,
    BEFORE,
    BROKEN,
    NOTHING,
    PLANTED,
    SEARCH,
    Story,
    finding,
    findings,
    open_fix,
)

GUARDED = "app/auth/login.py"
"""A path that is security-sensitive: four reviewers read it."""

HEAD = {**BASE, GUARDED: PLANTED}
FOUND = findings(finding(path=GUARDED))
REVIEWED_ONCE = {
    "runs": [(RunState.DONE, Verdict.SIGNIFICANT_CONCERNS, "critical", 1, 5, (1,), True)],
    "findings": [("F1", FindingStatus.OPEN, Origin.ORIGINAL, 1, 1)],
    "threads": [(1002, GUARDED)],
    "decisions": [
        ("review_start", "review", "requested"),
        ("verdict", "significant_concerns", "critical"),
    ],
    "spent": [(5, 500)],
    "pulls": [(0, 1, 1004)],
    "tasks": [],
    "jobs": [(JobKind.REVIEW_PULL_REQUEST, JobState.DONE)],
}
SHOWN_ONCE = {
    "reviews": [("COMMENTED", 1)],
    "threads": [(GUARDED, 2, None)],
    "comments": ["status"],
    "labels": [],
    "checks": ["neutral: Significant concerns: 1 critical"],
}

Kill = tuple[str, bool]
DEATHS: dict[str, tuple[list[Kill], list[Kill]]] = {
    "run recorded, check announced, coordinator recorded, round judged": (
        [("ensure_check_run", False), ("ensure_check_run", True)],
        [("pull_request", False), ("ensure_review", False)],
    ),
    "review posted, review kept, status posted, all but the check": (
        [],
        [
            ("ensure_review", True),
            ("ensure_comment", False),
            ("ensure_comment", True),
            ("ensure_check_run", False),
        ],
    ),
}
"""Where the worker dies, one death after the other: before its agents are asked, and after."""


@pytest.mark.parametrize(("early", "late"), DEATHS.values(), ids=DEATHS)
async def test_killed_workers_leave_no_trace(
    story: Story, early: list[Kill], late: list[Kill]
) -> None:
    """The same ledger and the same page as without the deaths, and nobody was asked twice."""
    story.open_pull(HEAD)

    async def dies_next(task: AgentTask) -> str:
        story.forge.kills.add(late[0])
        return await story.model.judge(task)

    story.model.answers = {AgentName.SECURITY: [FOUND], AgentName.COORDINATOR: [dies_next]}
    await story.ask()
    for kill in early:
        story.forge.kills.add(kill)
        await story.recover()
    await story.recover()
    for kill in late[1:]:
        assert not story.forge.kills
        story.forge.kills.add(kill)
        await story.recover()
    assert not story.forge.kills
    await story.recover()
    assert await story.snapshot() == REVIEWED_ONCE
    assert story.shown() == SHOWN_ONCE
    assert sorted(story.model.calls) == [
        "code_quality",
        "coordinator",
        "documentation",
        "performance",
        "security",
    ]


OTHERS = {"reviewer:security", "reviewer:performance", "reviewer:documentation"}


async def test_a_reviewer_that_finished_is_not_paid_twice(story: Story) -> None:
    """The worker dies while one of its reviewers works: only that one is asked again."""
    story.open_pull(HEAD)

    async def dies(task: AgentTask) -> str:
        async with asyncio.timeout(5):
            while not {step.name for step in await story.rows(JobStep)} >= OTHERS:  # noqa: ASYNC110  # the database tells nobody when it changes
                await asyncio.sleep(0.01)
        raise asyncio.CancelledError

    story.model.answers = {AgentName.SECURITY: [FOUND], AgentName.CODE_QUALITY: [dies, NOTHING]}
    await story.review()
    await story.recover()
    assert await story.snapshot() == REVIEWED_ONCE
    assert story.shown() == SHOWN_ONCE
    (run,) = await story.runs()
    assert sorted(run.prompt_versions) == sorted(set(story.model.calls))
    calls = story.model.calls
    assert {name: calls.count(name) for name in sorted(set(calls))} == {
        "code_quality": 2,
        "coordinator": 2,
        "documentation": 1,
        "performance": 1,
        "security": 1,
    }


async def test_a_crash_does_not_use_up_a_round(story: Story) -> None:
    """The round that a crash interrupts is the round that ends: a fix at its fourth goes on."""
    await open_fix(story, Severity.CRITICAL, tree={**BASE, SEARCH: PLANTED}, rounds_started=3)

    async def dies(task: AgentTask) -> str:
        raise asyncio.CancelledError

    story.model.answers = {AgentName.COORDINATOR: [dies, story.model.judge]}
    await story.review(actor=None)
    await story.recover()
    run = await story.last_run()
    assert (run.verdict, run.reason, run.round_number) == (
        Verdict.CHANGES_REQUESTED,
        "findings_block",
        4,
    )
    [task] = await story.tasks()
    assert (task.state, task.rounds_started) == (TaskState.QUEUED, 4)


async def test_a_thread_is_resolved_after_crashes(story: Story) -> None:
    """The finding is fixed in the ledger already; its thread is resolved all the same."""
    story.open_pull({**BASE, SEARCH: PLANTED})
    story.model.answers = {AgentName.GENERAL: [findings(finding()), NOTHING]}
    await story.review()
    story.push({**BASE, SEARCH: b"def search(q):\n    return db.run('select ?', q)\n"})
    story.model.carried = {"F1": "fixed"}
    story.forge.kills.add(("ensure_review", True))
    await story.review(action="synchronize")
    for after in (False, True):
        story.forge.kills.add(("resolve_threads", after))
        await story.recover()
    await story.recover()
    assert not story.forge.kills
    assert story.shown() == {
        "reviews": [("COMMENTED", 1), ("COMMENTED", 0)],
        "threads": [(SEARCH, 2, "mergeward[bot]")],
        "comments": ["status"],
        "labels": [],
        "checks": [
            "neutral: Significant concerns: 1 critical",
            "success: Approved: 1 fixed",
        ],
    }


async def test_a_refusal_is_decided_once(story: Story) -> None:
    """One decision, one run, one check, wherever the worker dies."""
    story.open_pull({**BASE, SEARCH: PLANTED}, draft=True)
    story.forge.kills.add(("ensure_check_run", False))
    await story.review()
    story.forge.kills.add(("ensure_check_run", True))
    await story.recover()
    await story.recover()
    assert await story.decisions() == [("review_start", "skip", "draft")]
    assert [run.state for run in await story.runs()] == [RunState.SKIPPED]
    assert story.shown()["checks"] == ["neutral: Skipped: draft"]


async def test_an_escalation_is_said_once(story: Story) -> None:
    """A fix that can't be reviewed is escalated by one decision, one comment and one label."""
    await open_fix(story, Severity.CRITICAL, tree={**BASE, SEARCH: PLANTED})
    story.model.answers = {AgentName.COORDINATOR: [BROKEN]}
    story.forge.kills.add(("ensure_comment", False))
    await story.review(actor=None)
    for kill in (("ensure_comment", True), ("ensure_label", True)):
        story.forge.kills.add(kill)
        await story.recover()
    await story.recover()
    assert not story.forge.kills
    assert story.shown() == {
        "reviews": [],
        "threads": [],
        "comments": ["comment"],
        "labels": ["mergeward:needs-human"],
        "checks": ["action_required: Not reviewed: the review failed"],
    }
    assert await story.decisions() == [
        ("review_start", "review", "requested"),
        ("review_start", "start", "allowed"),
        ("task", "reviewing", "round_begun"),
        ("after_round", "escalate", "unavailable"),
        ("task", "escalated", "escalated"),
    ]
    assert story.model.calls == ["coordinator"]


async def test_an_approval_is_published_after_a_death(story: Story) -> None:
    """The guards are asked about the round as it was, and nothing that happened since counts."""
    await open_fix(story, Severity.CRITICAL, tree={**BASE, SEARCH: PLANTED + b"\n# looked at\n"})
    story.model.carried = {"F1": "fixed"}
    story.forge.kills.add(("ensure_review", False))
    await story.review(actor=None)
    [task] = await story.tasks()
    async with story.store.write() as session:
        lineage = await session.get_one(Lineage, task.lineage_id)
        lineage.state = LineageState.STOPPED
    await story.recover()
    assert story.shown()["reviews"] == [("APPROVED", 0)]
    assert story.shown()["checks"] == ["success: Approved: 1 fixed"]
    assert (await story.last_run()).verdict is Verdict.APPROVED


async def test_a_push_during_the_outage_ends_the_old_run(story: Story) -> None:
    """What was begun for another head is not finished for this one, and costs nothing more."""
    story.open_pull(HEAD)
    story.forge.kills.add(("ensure_check_run", True))
    await story.review()
    story.push({**HEAD, "README.md": b"# Shop\nMore.\n"})
    await story.recover()
    assert [(run.state, run.reason) for run in await story.runs()] == [
        (RunState.CANCELLED, "superseded")
    ]
    assert story.model.calls == []
    assert story.shown()["checks"] == ["cancelled: Superseded"]


async def test_a_judged_round_is_published_for_its_own_head(story: Story) -> None:
    """The head moves between verdict and page: the comments stand where they were found."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.SECURITY: [FOUND]}
    story.forge.kills.add(("ensure_review", False))
    old = story.pull.head_sha
    await story.review()
    story.push({**BASE, GUARDED: b"\n\n\n" + PLANTED})
    await story.recover()
    [review] = story.world.pull(*story.place).reviews
    assert review.told.head_sha == old
    assert story.open_threads == [(GUARDED, 2)]


async def test_a_late_page_does_not_speak_over_a_newer_one(story: Story) -> None:
    """Meanwhile a newer head was reviewed and published: the older verdict is not published."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.SECURITY: [FOUND, NOTHING]}
    story.model.carried = {"F1": "fixed"}
    story.forge.kills.add(("ensure_review", False))
    await story.review()
    [first] = await story.jobs()
    async with story.store.write() as session:
        job = await session.get_one(type(first), first.id)
        job.state, job.run_at = JobState.QUEUED, story.clock.now().replace(year=2027)
        job.lease_owner = job.lease_expires_at = None
    story.push({**BASE, GUARDED: BEFORE})
    await story.review(action="synchronize")
    before = story.shown()
    assert before["reviews"] == [("COMMENTED", 0)]
    story.clock.move_to(story.clock.now().replace(year=2028))
    await story.work()
    late = "neutral: Significant concerns: 1 critical"
    assert story.shown() == {**before, "checks": [late, "success: Approved: 1 fixed"]}
    assert [job.state for job in await story.jobs()] == [JobState.DONE, JobState.DONE]
