"""Models that answer nonsense, fail, or make things up: never approved, never invented."""

from __future__ import annotations

import pytest

from app.agents.port import AgentTask
from app.domain.runs import AgentName, RunState
from app.errors import AgentError
from loop_guards import FindingStatus, Origin, Verdict
from tests.review.story import (
    BASE,
    BROKEN,
    NONSENSE,
    NOTHING,
    PLANTED,
    SEARCH,
    Speech,
    Story,
    finding,
    findings,
    use,
)

GUARDED = "app/auth/login.py"
HEAD = {**BASE, GUARDED: PLANTED}
STARTED = "check in_progress: Reviewing"
FAILED = "check neutral: Not reviewed: the review failed"


async def test_a_reviewer_that_talks_nonsense_is_named(story: Story) -> None:
    """Asked twice, then left out: the review says who is missing, and nothing is approved."""
    story.policy("human_prs: gate\n")
    story.open_pull(HEAD)
    story.model.answers = {AgentName.SECURITY: [NONSENSE]}
    await story.review()
    assert story.model.calls.count("security") == 2
    assert story.page() == [
        STARTED,
        "review COMMENT []",
        "status",
        "check action_required: Not reviewed completely: no findings",
    ]
    assert "security reviewer failed" in story.bodies[0]
    run = await story.last_run()
    assert (run.state, run.incomplete) == (RunState.DONE, ["security"])


async def test_a_second_try_that_can_be_read_is_enough(story: Story) -> None:
    """Nonsense once is no failure."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.SECURITY: [NONSENSE, findings(finding(path=GUARDED))]}
    await story.review()
    assert [row.short_id for row in await story.findings()] == ["F1"]
    assert (await story.last_run()).incomplete == []


@pytest.mark.parametrize(
    ("answers", "calls"),
    [
        pytest.param(
            {
                AgentName.SECURITY: [NONSENSE],
                AgentName.CODE_QUALITY: [BROKEN],
                AgentName.PERFORMANCE: [BROKEN],
                AgentName.DOCUMENTATION: [BROKEN],
            },
            {
                "coordinator": 1,
                "security": 2,
                "code_quality": 1,
                "performance": 1,
                "documentation": 1,
            },
            id="no reviewer",
        ),
        pytest.param({AgentName.COORDINATOR: [BROKEN]}, {"coordinator": 1}, id="no coordinator"),
        pytest.param(
            {AgentName.COORDINATOR: [NONSENSE]},
            {
                "coordinator": 3,
                "security": 1,
                "code_quality": 1,
                "performance": 1,
                "documentation": 1,
            },
            id="nonsense of the coordinator",
        ),
    ],
)
async def test_without_an_answer_the_run_has_failed(
    story: Story, answers: dict[AgentName, list[Speech]], calls: dict[str, int]
) -> None:
    """The check says that nothing was reviewed; what it cost is booked; a later try is possible."""
    story.open_pull(HEAD)
    story.model.answers = dict(answers)
    await story.review()
    assert story.page() == [STARTED, FAILED]
    assert {name: story.model.calls.count(name) for name in calls} == calls
    run = await story.last_run()
    assert (run.state, run.verdict) == (RunState.FAILED, None)
    assert run.model_calls == sum(calls.values())
    assert await story.spent() == (sum(calls.values()), 100 * sum(calls.values()))
    story.model.answers = {}
    await story.review(action="reopened")
    assert story.page()[-1] == "check success: Approved: no findings"


async def test_a_coordinator_that_asks_nobody_is_overruled(story: Story) -> None:
    """Its reviewers run all the same, and it is asked again with what they found."""
    story.open_pull(HEAD)

    async def lazy(task: AgentTask) -> str:
        kept = finding(path=GUARDED).replace("<finding>", '<finding source="security-1">')
        return story.model.review(task, kept if "security-1" in task.prompt else "")

    story.model.answers = {
        AgentName.SECURITY: [findings(finding(path=GUARDED))],
        AgentName.COORDINATOR: [lazy],
    }
    await story.review()
    calls = story.model.calls
    assert (calls[0], calls[-1], sorted(calls[1:-1])) == (
        "coordinator",
        "coordinator",
        ["code_quality", "documentation", "performance", "security"],
    )
    assert [row.title for row in await story.findings()] == ["Search term in the SQL text"]


async def test_what_a_coordinator_makes_up_changes_nothing(story: Story) -> None:
    """Unknown ids and files are refused, a finding it forgot is kept, each reviewer ran once."""
    story.open_pull({**BASE, SEARCH: PLANTED})
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}

    async def invents(task: AgentTask) -> str:
        await use(task, "spawn_reviewers")
        await use(task, "spawn_reviewers", reviewers=["general"])
        elsewhere = finding(path="etc/passwd", line=1, title="Not of this change")
        fixed = '</carried><carried><item id="F99" state="fixed">no</item>'
        return story.model.review(task, elsewhere).replace("</carried>", f"{fixed}</carried>", 1)

    story.model.answers[AgentName.COORDINATOR] = [invents]
    await story.review()
    assert story.model.calls == ["coordinator", "general"]
    [row] = await story.findings()
    assert (row.title, row.status) == ("Search term in the SQL text", FindingStatus.OPEN)


async def test_code_that_the_change_does_not_touch_is_pre_existing(story: Story) -> None:
    """The origin is read off the diff, whatever the model says."""
    old = b"".join(b"line %d\n" % number for number in range(1, 60))
    story.git.commit({**BASE, SEARCH: old}, parent=story.git.tip())
    story.open_pull({**BASE, SEARCH: old + b"new\n"})
    story.model.answers = {AgentName.GENERAL: [findings(finding(line=3), finding(line=60))]}
    await story.review()
    rows = await story.findings()
    assert [(row.start_line, row.origin) for row in rows] == [
        (3, Origin.PRE_EXISTING),
        (60, Origin.ORIGINAL),
    ]


async def test_a_dropped_finding_keeps_its_reason(story: Story) -> None:
    """What the coordinator leaves out is not published, and the run says why."""
    story.open_pull({**BASE, SEARCH: PLANTED})

    async def drops(task: AgentTask) -> str:
        await use(task, "spawn_reviewers")
        item = '<item source="general-1" reason="nitpick">a matter of taste</item>'
        return story.model.review(task, dropped=item)

    story.model.answers = {
        AgentName.GENERAL: [findings(finding(severity="suggestion"))],
        AgentName.COORDINATOR: [drops],
    }
    await story.review()
    run = await story.last_run()
    assert run.verdict is Verdict.APPROVED
    assert run.dropped == [{"refs": ["general-1"], "reason": "nitpick", "why": "a matter of taste"}]
    assert await story.findings() == []


async def test_an_error_of_ours_is_not_shown_to_people(story: Story) -> None:
    """An unforeseen error is tried again, then told without its inner words."""
    story.open_pull(HEAD)

    async def breaks(task: AgentTask) -> None:
        raise RuntimeError("secret inner words")

    story.model.before = breaks
    story.model.answers = {AgentName.COORDINATOR: [NOTHING]}
    await story.review()
    assert story.page() == [STARTED, FAILED]
    assert "secret" not in story.check.summary
    assert AgentError.__name__ not in story.check.summary
