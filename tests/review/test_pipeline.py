"""The review of one pull request, told as stories: what is on the page and in the ledger."""

from __future__ import annotations

from app.agents.port import AgentTask
from app.domain.runs import AgentName, RunState
from loop_guards import FindingStatus, Origin, Verdict
from tests.review.story import BASE, PLANTED, SEARCH, Story, finding, findings

HEAD = {**BASE, SEARCH: PLANTED}


async def test_a_first_review_is_told_once_and_stored(story: Story) -> None:
    """One review with its comment, one status, the check from start to end; nothing else."""
    story.open_pull(HEAD)
    story.model.answers = {AgentName.GENERAL: [findings(finding())]}
    charged: list[object] = []

    async def look(task: AgentTask) -> None:
        charged.append((await story.last_run()).charged_at)

    story.model.before = look
    await story.review()
    assert story.page() == [
        "check in_progress: Reviewing",
        "review COMMENT [app/search.py:2]",
        "status",
        "check neutral: Significant concerns: 1 critical",
    ]
    assert story.model.calls == ["coordinator", "general"]
    assert None not in charged, "a round is charged before its first model call"
    [row] = await story.findings()
    assert (row.short_id, row.origin, row.status) == ("F1", Origin.ORIGINAL, FindingStatus.OPEN)
    assert row.code == PLANTED.decode().splitlines()[1]
    assert row.fingerprint
    assert row.thread_id is not None
    run = await story.last_run()
    assert (run.state, run.verdict) == (RunState.DONE, Verdict.SIGNIFICANT_CONCERNS)
    assert (run.round_number, run.model_calls, run.blocking) == (1, 2, [row.id])
    assert await story.spent() == (2, 200)
    assert await story.decisions() == [
        ("review_start", "review", "requested"),
        ("verdict", "significant_concerns", "critical"),
    ]
