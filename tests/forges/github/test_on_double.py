"""The client against GitHub's own rules, as the double keeps them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from app.domain.effects import (
    Annotation,
    AnnotationLevel,
    CheckConclusion,
    CheckReceipt,
    CheckStatus,
    Comment,
    Effect,
    InlineComment,
    OpenPullRequest,
    PublishReview,
    ReplyToThread,
    Resolution,
    ResolveThread,
    ReviewEvent,
    SetCheckRun,
    SetStickyComment,
    ThreadReceipt,
)
from app.domain.jobs import AppRole
from app.domain.markers import Marker, MarkerKind
from app.errors import ForgeForbidden, ForgeUnavailable
from app.forges.apply import Target, apply
from app.forges.github.writes import GitHubForge
from app.sandbox.github import GitHubDouble
from app.sandbox.github.reviewing import Submission, create_review
from tests.contracts.forge.stage import (
    BRANCH,
    CHANGED,
    CHANGED_LINE,
    FIX_BRANCH,
    DoubleStage,
    double_config,
    double_stage,
    github_app,
    populate,
)
from tests.domain.decisions import APPROVED

REVIEW = Marker(MarkerKind.REVIEW, "run-1")
F1 = Marker(MarkerKind.FINDING, "1-F1")
STATUS = Marker(MarkerKind.STATUS, "pr-1")
READ_ONLY = {
    "metadata": "read",
    "contents": "read",
    "pull_requests": "write",
    "checks": "write",
    "issues": "write",
}


@pytest.fixture
async def stage(key: str) -> AsyncIterator[DoubleStage]:
    async with double_stage(key) as made:
        yield made


def review(stage: DoubleStage) -> PublishReview:
    comments = (InlineComment(CHANGED, CHANGED_LINE, "A finding.", F1),)
    event = ReviewEvent.COMMENT
    return PublishReview(event, "One finding.", stage.head_sha, REVIEW, APPROVED, comments)


def check(stage: DoubleStage, *, done: bool = True) -> SetCheckRun:
    return SetCheckRun(
        head_sha=stage.head_sha,
        external_id="run-1",
        status=CheckStatus.COMPLETED if done else CheckStatus.IN_PROGRESS,
        conclusion=CheckConclusion.SUCCESS if done else None,
        title="Approved",
        summary="Nothing to say.",
        verdict=APPROVED,
        annotations=(Annotation(CHANGED, 20, 20, AnnotationLevel.NOTICE, "note", "title"),),
    )


def posts(gh: GitHubDouble, tail: str) -> int:
    return sum(call.method == "POST" and call.path.endswith(tail) for call in gh.calls)


@pytest.mark.parametrize("happened", [True, False], ids=["after the effect", "before it"])
async def test_bad_gateway(stage: DoubleStage, happened: bool) -> None:
    """After a 502 the next attempt posts only what is not there."""
    stage.gh.faults.fail_call("POST", "/reviews$", 502, after=happened)
    refusals = 0
    for _ in range(2):
        try:
            await stage.reviewer.ensure_review(stage.repo, stage.number, review(stage))
        except ForgeUnavailable:
            refusals += 1
    assert refusals == (0 if happened else 1)
    assert posts(stage.gh, "/reviews") == (1 if happened else 2)
    assert len(stage.gh.pull("acme/shop", 1).reviews) == 1
    assert len(stage.gh.pull("acme/shop", 1).threads) == 1


@pytest.mark.parametrize(
    ("comments", "reads"),
    [pytest.param(True, 1, id="with-comments"), pytest.param(False, 0, id="without-any")],
)
async def test_reading_back_costs_one_request_at_most(
    stage: DoubleStage, comments: bool, reads: int
) -> None:
    """Ids and lines of a review's comments come with one answer, and none is asked for in vain."""
    wanted = review(stage) if comments else replace(review(stage), comments=())
    await stage.reviewer.identity()
    before = len(stage.gh.calls)
    args = stage.repo, stage.number, wanted
    await stage.reviewer.ensure_review(*args, maybe_published=False)
    made = [call for call in stage.gh.calls[before:] if "/access_tokens" not in call.path]
    assert [call.method for call in made] == ["POST", *["GET"] * reads]


async def test_a_comment_outdated_before_it_was_read_back(stage: DoubleStage) -> None:
    """In doubt its text is told twice; it is known, so that its thread can be resolved."""
    stage.gh.faults.fail_call("GET", r"/reviews/\d+/comments$", 500, times=9)
    with pytest.raises(ForgeUnavailable):
        await stage.reviewer.ensure_review(stage.repo, stage.number, review(stage))
    stage.gh.faults.calls.clear()
    lines = "".join(f"line {n}\n" for n in range(1, 41))
    await stage.gh.push("acme/shop", BRANCH, {CHANGED: lines, "new.txt": "x"}, author="alice")
    receipt = await stage.reviewer.ensure_review(stage.repo, stage.number, review(stage))
    assert (receipt.created, receipt.unplaced) == (False, (F1.id,))
    assert receipt.comment_id(F1) is not None
    assert len(stage.gh.pull("acme/shop", 1).reviews) == 1


async def test_pending_debris(stage: DoubleStage) -> None:
    """A half-made review of ours blocks every other: it is thrown away."""
    pull = stage.gh.pull_request("acme/shop", 1)
    mine = Submission(None, "half", None)
    await create_review(stage.gh.hub, pull, stage.gh.user("mergeward[bot]"), mine)
    args = stage.repo, stage.number, review(stage)
    receipt = await stage.reviewer.ensure_review(*args, maybe_published=False)
    assert receipt.created
    assert [r.body.splitlines()[0] for r in stage.gh.pull("acme/shop", 1).reviews] == [
        "One finding."
    ]


async def test_resolving_is_not_granted(key: str) -> None:
    """Without contents write a reply says what resolving would; it is asked for once only."""
    async with GitHubDouble(double_config(key)) as gh:
        repo, number, head = await populate(gh)
        for installation in list(gh.hub.world.installations.values()):
            installation.permissions = dict(READ_ONLY)
        async with GitHubForge(github_app(gh, AppRole.REVIEWER)) as forge:
            made = DoubleStage(gh, repo, number, head, forge, forge)
            given = await forge.ensure_review(repo, number, review(made))
            (thread,) = (await forge.discussion(repo, number)).threads
            comment = given.comment_id(F1)
            assert comment is not None
            reply = ReplyToThread(comment, Marker(MarkerKind.REPLY, "F1-fixed"), "Fixed.")
            effects = [ResolveThread(thread.node_id, reply)] * 2
            first, again = await apply(forge, Target(repo, number), effects)
            assert isinstance(first, ThreadReceipt)
            assert isinstance(again, ThreadReceipt)
            assert first.resolution is again.resolution is Resolution.NOT_GRANTED
            assert first.reply
            assert again.reply
            assert (first.reply.created, again.reply.created) == (True, False)
        refused = [c for c in gh.calls if c.path.endswith("/access_tokens") and c.status == 422]
        assert len(refused) == 1
        assert made.reply_count() == 1


async def test_no_check_permission(key: str) -> None:
    """What an installation has not granted fails by name; the rest still works."""
    async with GitHubDouble(double_config(key)) as gh:
        repo, number, head = await populate(gh)
        for installation in list(gh.hub.world.installations.values()):
            installation.permissions = {k: v for k, v in READ_ONLY.items() if k != "checks"}
        async with GitHubForge(github_app(gh, AppRole.REVIEWER)) as forge:
            made = DoubleStage(gh, repo, number, head, forge, forge)
            with pytest.raises(ForgeForbidden, match="the permission checks: "):
                await forge.ensure_check_run(repo, check(made))
            await forge.ensure_review(repo, number, review(made))


async def test_resolving_token_does_nothing_else(stage: DoubleStage) -> None:
    """Every ordinary request goes with a token that can't write contents."""
    await apply(stage.reviewer, Target(stage.repo, 1), [check(stage), review(stage)])
    (thread,) = (await stage.reviewer.discussion(stage.repo, 1)).threads
    assert await stage.reviewer.resolve_threads(stage.repo, [thread.node_id]) == {
        thread.node_id: Resolution.RESOLVED
    }
    writers = [
        token
        for token in stage.gh.hub.identity.tokens.values()
        if token.permissions.get("contents") == "write"
    ]
    assert len(writers) == 1
    assert writers[0].repositories == frozenset({stage.repo.repository_id})
    assert stage.gh.pull("acme/shop", 1).threads[0].resolved_by == "mergeward[bot]"


async def test_cost_of_a_first_review(stage: DoubleStage) -> None:
    """Once the process knows itself and has its token, a round stays within ten requests."""
    await stage.reviewer.identity()
    await stage.reviewer.pull_request(stage.repo, 1)
    before = len(stage.gh.calls)
    forge, target = stage.reviewer, Target(stage.repo, 1)
    await forge.pull_request(stage.repo, 1)
    await forge.discussion(stage.repo, 1)
    (receipt,) = await apply(forge, target, [check(stage, done=False)], maybe_published=False)
    assert isinstance(receipt, CheckReceipt)
    await apply(
        forge,
        target,
        [review(stage), SetStickyComment(STATUS, "Round 1 of 5."), check(stage)],
        maybe_published=False,
    )
    assert len(stage.gh.calls) - before <= 10


async def test_enterprise_address(stage: DoubleStage) -> None:
    """Everything works below `/api/v3`, GraphQL and clone addresses included."""
    async with GitHubForge(github_app(stage.gh, AppRole.REVIEWER, api="/api/v3")) as forge:
        await forge.ensure_review(stage.repo, 1, review(stage))
        assert len((await forge.discussion(stage.repo, 1)).threads) == 1
        remote = await forge.clone_remote(stage.repo, write=False)
    assert remote.url == f"{stage.gh.url}/acme/shop.git"


async def test_every_text_passes_the_sanitiser(stage: DoubleStage) -> None:
    """No body, title or annotation leaves without having passed `outgoing`."""
    seen: list[str] = []

    def outgoing(text: str) -> str:
        seen.append(text)
        return text.replace("finding", "remark")

    await stage.push(FIX_BRANCH)
    async with (
        GitHubForge(github_app(stage.gh, AppRole.REVIEWER), outgoing) as forge,
        GitHubForge(github_app(stage.gh, AppRole.FIXER), outgoing) as fixer,
    ):
        said: list[Effect] = [review(stage), SetStickyComment(STATUS, "sticky"), check(stage)]
        said.append(Comment(Marker(MarkerKind.COMMENT, "c"), "comment"))
        await apply(forge, Target(stage.repo, 1), said)
        pull = OpenPullRequest(
            FIX_BRANCH, "main", "fix title", "fix body", Marker(MarkerKind.FIX, "t")
        )
        await apply(fixer, Target(stage.repo), [pull])
    expected = {"One finding.", "A finding.", "sticky", "comment", "fix title", "fix body"}
    assert expected | {"Approved", "Nothing to say.", "note", "title"} <= set(seen)
    assert stage.gh.pull("acme/shop", 1).threads[0].comments[0].body.startswith("A remark.")


async def test_effects_that_need_a_pull_request(stage: DoubleStage) -> None:
    """A check run for a merge queue needs none; a review without one is our mistake."""
    await apply(stage.reviewer, Target(stage.repo), [check(stage)])
    with pytest.raises(ValueError, match="needs a pull request"):
        await apply(stage.reviewer, Target(stage.repo), [review(stage)])
