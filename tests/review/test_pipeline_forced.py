"""A head that a person approved by force, and its review: before, during, after (review/forced)."""

from __future__ import annotations

import pytest
from sqlmodel import select

from app.domain.effects import CheckConclusion, CheckStatus, PublishReview, SetCheckRun
from app.domain.runs import AgentName, RunState, Trigger
from app.domain.tasks import LineageState
from app.store.commands import DecisionRecord, record_decision
from app.store.glass import GLASS
from app.store.tables import Lineage
from loop_guards import GlassFacts, answer_glass
from tests.review.story import BASE, BROKEN, PERSON, PLANTED, REPO, SEARCH, Story, finding, findings

TREE = {**BASE, SEARCH: PLANTED}


async def force(story: Story) -> None:
    """Somebody breaks the glass for the present head."""
    decision = answer_glass(GlassFacts(by_human=True, can_write=True, is_open=True))
    record = {
        **decision.as_record(),
        "number": story.number,
        "head_sha": story.pull.head_sha,
        "login": "mara",
        "why": "",
    }
    async with story.store.write() as session:
        await record_decision(
            session,
            DecisionRecord(GLASS, "forced", "by_human", record, repository_id=REPO.repository_id),
            now=story.clock.now(),
        )


@pytest.fixture
def gated(story: Story) -> Story:
    """A gate, and a review that finds something critical."""
    story.policy("human_prs: gate\n")
    bad = findings(finding(severity="critical"))
    story.model.answers = {AgentName.GENERAL: [bad], AgentName.CODE_QUALITY: [bad]}
    return story


def checks(story: Story) -> list[SetCheckRun]:
    return [item for item in story.forge.effects if isinstance(item, SetCheckRun)]


async def test_a_review_after_it_takes_nothing_back(gated: Story) -> None:
    """What was found is said; no check goes back to waiting or to red, the review approves."""
    gated.open_pull(TREE)
    await force(gated)
    await gated.review(PERSON, trigger=Trigger.COMMAND, action="created")
    assert {check.status for check in checks(gated)} == {CheckStatus.COMPLETED}
    assert gated.check.conclusion is CheckConclusion.SUCCESS
    assert gated.check.title.startswith("Approved by force by mara; Significant concerns")
    (review,) = [item for item in gated.forge.effects if isinstance(item, PublishReview)]
    assert review.event == "APPROVE"
    assert "critical" in review.body
    assert (await gated.last_run()).verdict == "significant_concerns"


async def test_a_review_that_runs_meanwhile_does_not_overwrite_it(gated: Story) -> None:
    """Also at the last moment: the check of the run ends green."""
    gated.open_pull(TREE)

    async def at_the_last_moment() -> None:
        gated.forge.before_review = None
        await force(gated)

    gated.forge.before_review = at_the_last_moment
    await gated.review(PERSON)
    assert gated.check.conclusion is CheckConclusion.SUCCESS


async def test_a_review_that_fails_does_not_take_it_back(gated: Story) -> None:
    """With every provider down the head stays approved."""
    gated.open_pull(TREE)
    await force(gated)
    gated.model.answers = {AgentName.COORDINATOR: [BROKEN]}
    await gated.review(PERSON)
    assert {check.conclusion for check in checks(gated)} == {CheckConclusion.SUCCESS}


async def test_a_later_push_is_judged_like_any_other(gated: Story) -> None:
    """The approval is of one head alone."""
    gated.open_pull(TREE)
    await force(gated)
    await gated.review(PERSON)
    gated.push({**TREE, "more.py": b"y = 1\n"})
    await gated.review(PERSON)
    assert gated.check.conclusion is CheckConclusion.FAILURE


async def test_a_stopped_lineage_starts_no_machines_review(story: Story) -> None:
    """A person's own push still is reviewed; a machine's waits for the resume."""
    story.open_pull(TREE)
    await story.review(PERSON)
    async with story.store.write() as session:
        lineage = (await session.exec(select(Lineage))).one()
        lineage.state = LineageState.STOPPED
    story.push({**TREE, "more.py": b"y = 1\n"})
    await story.review(actor=None)
    run = await story.last_run()
    assert (run.state, run.reason) == (RunState.SKIPPED, "stopped")
    story.push({**TREE, "more.py": b"y = 2\n"})
    await story.review(PERSON)
    assert (await story.last_run()).state is RunState.DONE
