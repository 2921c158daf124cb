"""Stories of breaking the glass (commands/glass): any state, no model, one head, on record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.domain.effects import CheckConclusion, PublishReview, ReviewEvent, SetCheckRun
from app.domain.jobs import JobKind
from app.domain.pull_request import Permission, PullRequestState
from app.errors import ForgeForbidden, ForgeUnavailable
from app.review.publish import starting_check, unreviewed_check
from app.store.glass import forced_approval, forced_approvals
from tests.commands.test_comments import COMMENT, answer, comments
from tests.handoff.fixtures import MakeStage, in_module_loop
from tests.handoff.stage import Stage, account
from tests.store.rows import REPOSITORY

pytestmark = in_module_loop


def checks(stage: Stage) -> list[tuple[str, CheckConclusion | None]]:
    """Every check that was set, by its head and conclusion."""
    found = [item for item in stage.reviewer.written if isinstance(item, SetCheckRun)]
    return [(item.head_sha, item.conclusion) for item in found]


def reviews(stage: Stage) -> list[ReviewEvent]:
    return [item.event for item in stage.reviewer.written if isinstance(item, PublishReview)]


async def test_before_any_review_the_head_is_approved(stage: Stage) -> None:
    """No ledger, no model: the check of this head is green, attributed, with the reason."""
    head = stage.open().head_sha
    await comments(stage, "Break Glass: production is down @everyone")
    assert checks(stage) == [(head, CheckConclusion.SUCCESS)]
    assert f"by alice, for `{head[:10]}` alone" in answer(stage)
    (check,) = [item for item in stage.reviewer.written if isinstance(item, SetCheckRun)]
    assert check.title == "Approved by force by alice"
    assert "production is down" in check.summary
    assert "@everyone" not in check.summary
    assert reviews(stage) == []
    async with stage.store.read() as session:
        forced = await forced_approval(session, REPOSITORY, 1, head)
    assert forced is not None
    assert (forced.login, forced.why) == ("alice", "production is down @everyone")


async def test_behind_a_gate_a_review_says_so_too(make_stage: MakeStage) -> None:
    """Where our reviews bind, ours approves; in advice the check is enough."""
    stage = await make_stage("human_prs: gate\n")
    stage.open()
    await comments(stage, "break glass")
    assert reviews(stage) == [ReviewEvent.APPROVE]


async def test_checks_that_are_there_turn_green(stage: Stage) -> None:
    """Whatever a review has said of the head, or is about to say: no check of ours stays red."""
    head = stage.open().head_sha
    await stage.reviewer.ensure_check_run(stage.repo, starting_check(7, head))
    red = unreviewed_check("run-3", head, "Failed", "x", gated=True)
    await stage.reviewer.ensure_check_run(stage.repo, red)
    await comments(stage, "break glass")
    shown = await stage.reviewer.our_checks(stage.repo, head)
    assert {check.conclusion for check in shown} == {"success"}
    assert len(shown) == 2


async def test_a_later_push_needs_a_new_one(stage: Stage) -> None:
    """It covers the head of that moment; each is counted."""
    first = stage.open()
    await comments(stage, "break glass")
    second = replace(first, head_sha="b" * 40)
    stage.world.put_pull(stage.repo, second)
    async with stage.store.read() as session:
        assert await forced_approval(session, REPOSITORY, 1, second.head_sha) is None
    await comments(stage, "/mergeward status")
    assert "Approved by force once." in stage.comments()[-1]
    await comments(stage, "break glass")
    assert checks(stage)[-1] == (second.head_sha, CheckConclusion.SUCCESS)
    async with stage.store.read() as session:
        assert len(await forced_approvals(session, REPOSITORY, 1)) == 2
    await comments(stage, "/mergeward status")
    assert "Approved by force 2 times; the present head by alice." in stage.comments()[-1]


@pytest.mark.parametrize(
    ("by", "state", "why"),
    [
        ("mallory", PullRequestState.OPEN, "needs write access"),
        ("alice", PullRequestState.CLOSED, "is not open"),
        ("alice", PullRequestState.MERGED, "is not open"),
    ],
)
async def test_a_refusal_says_why(stage: Stage, by: str, state: PullRequestState, why: str) -> None:
    """Nothing is approved, and the refusal is on record too."""
    stage.world.put_pull(stage.repo, replace(stage.open(), state=state))
    await comments(stage, "break glass", by=by)
    assert why in answer(stage)
    assert (checks(stage), reviews(stage)) == ([], [])
    assert len(await stage.reasons("break_glass")) == 1


@pytest.mark.parametrize("by", ["scribe[bot]", "mergeward[bot]"])
async def test_a_machine_breaks_nothing(stage: Stage, by: str) -> None:
    """Whatever its rights: no approval, no answer."""
    stage.open()
    stage.world.permissions[by] = Permission.ADMIN
    await comments(stage, "break glass", by=by)
    assert (stage.reviewer.effects, await stage.reasons("break_glass")) == ([], [])


async def test_where_github_does_not_say_who_may_nothing_is_forced(stage: Stage) -> None:
    """An unknown permission is none."""
    stage.open()
    stage.reviewer.fail_next("permission", ForgeForbidden("no", status=403))
    await comments(stage, "break glass")
    assert "GitHub refuses to say" in answer(stage)
    assert checks(stage) == []


async def test_shadow_writes_nothing(make_stage: MakeStage) -> None:
    """In shadow mode there is nothing that would hold anybody up; the act is on record."""
    stage = await make_stage("mode: shadow\n")
    stage.open()
    await comments(stage, "break glass")
    assert (stage.reviewer.effects, await stage.reasons("break_glass")) == ([], ["by_human"])


@pytest.mark.parametrize("verb", ["react", "ensure_check_run", "ensure_comment"])
@pytest.mark.parametrize("after", [False, True])
async def test_a_retry_forces_once(stage: Stage, verb: str, after: bool) -> None:
    """An answer of GitHub that got lost is looked for, and the head stays the one that was meant,
    also when there is a newer one by then."""
    first = stage.open()
    stage.reviewer.fail_next(verb, ForgeUnavailable("no answer"), after=after)
    comment_id = await comments(stage, "break glass")
    moved = "b" * 40
    if verb != "react":
        stage.world.put_pull(stage.repo, replace(first, head_sha=moved))
    await stage.later(minutes=1)
    await stage.queue(stage.comment_request(comment_id, "break glass", 1, "alice"))
    await stage.run(COMMENT)
    assert {head for head, _ in checks(stage)} == {first.head_sha}
    assert len(stage.comments()) == 1
    assert len(await stage.reasons("break_glass")) == 1


async def test_no_model_and_no_review_is_asked(stage: Stage) -> None:
    """With every provider down it works all the same: nothing is queued."""
    stage.open()
    await comments(stage, "break glass")
    assert stage.agent.tasks == []
    assert await stage.jobs(JobKind.REVIEW_PULL_REQUEST) == []
    assert account("alice").login in answer(stage)
