"""What every forge owes the stories."""

from __future__ import annotations

import pytest

from app.domain.effects import (
    Annotation,
    AnnotationLevel,
    CheckConclusion,
    CheckStatus,
    Comment,
    Dismissal,
    EditReview,
    InlineComment,
    OpenPullRequest,
    PublishReview,
    Reaction,
    ReplyToThread,
    Resolution,
    ReviewEvent,
    SetCheckRun,
    SetStickyComment,
    Side,
)
from app.domain.forge import ReviewState
from app.domain.markers import Marker, MarkerKind, with_marker
from app.domain.pull_request import AccountKind, Permission, PullRequestState
from app.errors import ForgeError, ForgeNotFound, ForgeRejected
from app.forges.apply import Target, apply
from tests.contracts.forge.stage import BRANCH, CHANGED, CHANGED_LINE, FIX_BRANCH, Stage
from tests.domain.decisions import APPROVED, CONCERNS

REVIEW = Marker(MarkerKind.REVIEW, "run-1")
F1, F2 = Marker(MarkerKind.FINDING, "1-F1"), Marker(MarkerKind.FINDING, "1-F2")
STATUS = Marker(MarkerKind.STATUS, "pr-1")
REPLY = Marker(MarkerKind.REPLY, "1-F1-fixed")
FIX = Marker(MarkerKind.FIX, "task-1")
SAID = {
    ReviewEvent.APPROVE: APPROVED,
    ReviewEvent.REQUEST_CHANGES: CONCERNS,
    ReviewEvent.COMMENT: CONCERNS,
}


def inline(
    marker: Marker = F1, line: int = CHANGED_LINE, start: int | None = None
) -> InlineComment:
    return InlineComment(CHANGED, line, f"Finding {marker.id}", marker, Side.RIGHT, start)


def review(
    stage: Stage,
    event: ReviewEvent = ReviewEvent.REQUEST_CHANGES,
    comments: tuple[InlineComment, ...] = (),
) -> PublishReview:
    said = SAID[event]
    return PublishReview(event, "Two findings.", stage.head_sha, REVIEW, said, comments)


def check(stage: Stage, count: int = 0, *, done: bool = False) -> SetCheckRun:
    notes = tuple(
        Annotation(CHANGED, n + 1, n + 1, AnnotationLevel.WARNING, f"note {n}")
        for n in range(count)
    )
    return SetCheckRun(
        head_sha=stage.head_sha,
        external_id="run-1",
        status=CheckStatus.COMPLETED if done else CheckStatus.IN_PROGRESS,
        conclusion=CheckConclusion.FAILURE if done else None,
        title="Reviewing",
        summary="Two reviewers are at work.",
        annotations=notes,
    )


class TestReads:
    async def test_who_we_are(self, stage: Stage) -> None:
        """An App knows its bot account: its id is how own texts are told from quoted ones."""
        me, other = await stage.reviewer.identity(), await stage.fixer.identity()
        assert me.account.kind is AccountKind.BOT
        assert me.account.login == "mergeward[bot]"
        assert me.commit_email == f"{me.account.id}+mergeward[bot]@users.noreply.github.com"
        assert other.account.id != me.account.id

    async def test_pull_request(self, stage: Stage) -> None:
        """A pull request tells its author, head, base and state in the domain's words."""
        pull = await stage.reviewer.pull_request(stage.repo, stage.number)
        assert (pull.author.login, pull.author.kind) == ("alice", AccountKind.USER)
        assert (pull.head_ref, pull.head_sha) == (BRANCH, stage.head_sha)
        assert (pull.base_ref, pull.default_branch) == ("main", "main")
        assert (pull.state, pull.merge_commit_sha) == (PullRequestState.OPEN, None)
        assert pull.head_repo == "acme/shop"

    async def test_no_such_pull_request(self, stage: Stage) -> None:
        """What is not there is ForgeNotFound, never an empty value."""
        with pytest.raises(ForgeNotFound):
            await stage.reviewer.pull_request(stage.repo, 404)

    async def test_open_pull_requests(self, stage: Stage) -> None:
        """Closed ones are not open."""
        found = await stage.reviewer.open_pull_requests(stage.repo)
        assert [pull.number for pull in found] == [stage.number]
        await stage.close(stage.number)
        assert await stage.reviewer.open_pull_requests(stage.repo) == ()

    async def test_pulls_of_a_commit(self, stage: Stage) -> None:
        """A head leads to its pull request; an unknown commit leads to none."""
        found = await stage.reviewer.commit_pulls(stage.repo, stage.head_sha)
        assert [pull.number for pull in found] == [stage.number]
        assert await stage.reviewer.commit_pulls(stage.repo, "f" * 40) == ()

    async def test_branch(self, stage: Stage) -> None:
        """Names with `#`, `/` and `%` reach the forge whole; a missing branch is None."""
        assert await stage.reviewer.branch_sha(stage.repo, BRANCH) == stage.head_sha
        assert await stage.reviewer.branch_sha(stage.repo, "feature/") is None

    @pytest.mark.parametrize(
        ("login", "level"),
        [
            pytest.param("alice", Permission.WRITE, id="collaborator"),
            pytest.param("mallory", Permission.READ, id="reader"),
            pytest.param("nobody-at-all", Permission.NONE, id="unknown"),
        ],
    )
    async def test_permission(self, stage: Stage, login: str, level: Permission) -> None:
        """Commands ask this before anything happens; who is unknown may nothing."""
        assert await stage.reviewer.permission(stage.repo, login) is level

    async def test_repositories(self, stage: Stage) -> None:
        """The reconciler finds every repository of every installation, named as stories name it."""
        installations = await stage.reviewer.installations()
        ids = [found.id for found in installations if not found.suspended]
        found = await stage.reviewer.installation_repositories(ids[0])
        assert [known.ref for known in found] == [stage.repo]
        assert (await stage.reviewer.repository(stage.repo)).ref == stage.repo
        assert (await stage.reviewer.find_repository("acme", "shop")).ref == stage.repo
        with pytest.raises(ForgeNotFound):
            await stage.reviewer.find_repository("acme", "other")

    async def test_clone_remote(self, stage: Stage) -> None:
        """The address never holds the token, and reading gets another token than writing."""
        read = await stage.reviewer.clone_remote(stage.repo, write=False)
        write = await stage.fixer.clone_remote(stage.repo, write=True)
        assert read.url.endswith("/acme/shop.git")
        assert read.token not in read.url + repr(read)
        assert read.token != write.token


class TestReview:
    async def test_published_once(self, stage: Stage) -> None:
        """A repeated job finds its review and the ids of its comments, and posts nothing."""
        wanted = review(stage, comments=(inline(F1), inline(F2, 22, 20)))
        first = await stage.reviewer.ensure_review(stage.repo, stage.number, wanted)
        again = await stage.reviewer.ensure_review(stage.repo, stage.number, wanted)
        assert (first.created, again.created) == (True, False)
        assert again.review_id == first.review_id
        assert again.comment_ids == first.comment_ids
        assert {name for name, _ in first.comment_ids} == {"1-F1", "1-F2"}
        reviews = await stage.reviewer.our_reviews(stage.repo, stage.number)
        assert [(r.id, r.state) for r in reviews] == [
            (first.review_id, ReviewState.CHANGES_REQUESTED)
        ]
        threads = (await stage.reviewer.discussion(stage.repo, stage.number)).threads
        assert [(t.path, t.line, t.ours, t.resolved) for t in threads] == [
            (CHANGED, CHANGED_LINE, True, False),
            (CHANGED, 22, True, False),
        ]
        assert threads[0].comments[0].id == first.comment_id(F1)

    async def test_crash_between_post_and_record(self, stage: Stage) -> None:
        """The process died after GitHub had the review: the next attempt posts nothing new."""
        stage.lose_answer("ensure_review")
        wanted = review(stage, comments=(inline(),))
        receipt = None
        for _ in range(2):
            try:
                receipt = await stage.reviewer.ensure_review(stage.repo, stage.number, wanted)
            except ForgeError:
                continue
        assert receipt is not None
        assert receipt.comment_id(F1) is not None
        assert len(await stage.reviewer.our_reviews(stage.repo, stage.number)) == 1

    async def test_anchor_outside_the_diff(self, stage: Stage) -> None:
        """One bad anchor refuses the whole review, in GitHub's words; nothing is published."""
        wanted = review(stage, comments=(inline(F1), inline(F2, 2)))
        with pytest.raises(ForgeRejected, match="line must be part of the diff"):
            await stage.reviewer.ensure_review(stage.repo, stage.number, wanted)
        assert await stage.reviewer.our_reviews(stage.repo, stage.number) == ()

    @pytest.mark.parametrize(
        ("kept", "known", "lines"),
        [
            pytest.param(True, ["1-F1", "1-F2"], [CHANGED_LINE, None], id="thread-without-line"),
            pytest.param(False, ["1-F1"], [CHANGED_LINE], id="no-thread"),
        ],
    )
    async def test_a_comment_that_nobody_sees(
        self, stage: Stage, kept: bool, known: list[str], lines: list[int | None]
    ) -> None:
        """What was taken without a line is named, also to a repeated job; where a thread was made
        of it, we know its comment."""
        stage.hide_comment(22, kept=kept)
        wanted = review(stage, comments=(inline(F1), inline(F2, 22)))
        for _ in range(2):
            receipt = await stage.reviewer.ensure_review(stage.repo, stage.number, wanted)
            assert receipt.unplaced == ("1-F2",)
            assert [name for name, _ in receipt.comment_ids] == known
        threads = (await stage.reviewer.discussion(stage.repo, stage.number)).threads
        assert [thread.line for thread in threads] == lines

    async def test_comments_that_everybody_sees(self, stage: Stage) -> None:
        """Where each comment has its line, or several, none is named."""
        wanted = review(stage, comments=(inline(F1), inline(F2, 22, 20)))
        receipt = await stage.reviewer.ensure_review(stage.repo, stage.number, wanted)
        assert receipt.unplaced == ()

    async def test_another_body(self, stage: Stage) -> None:
        """A review of ours may say something else: its event, its marker and its comments stay."""
        given = await stage.reviewer.ensure_review(
            stage.repo, stage.number, review(stage, comments=(inline(),))
        )
        for _ in range(2):
            await stage.reviewer.edit_review(
                stage.repo, stage.number, EditReview(given.review_id, REVIEW, "Three findings.")
            )
        (found,) = await stage.reviewer.our_reviews(stage.repo, stage.number)
        assert found.body.startswith("Three findings.")
        assert (found.state, found.markers) == (ReviewState.CHANGES_REQUESTED, (REVIEW,))
        assert len((await stage.reviewer.discussion(stage.repo, stage.number)).threads) == 1

    @pytest.mark.parametrize("event", [ReviewEvent.APPROVE, ReviewEvent.REQUEST_CHANGES])
    async def test_own_pull_request(self, stage: Stage, event: ReviewEvent) -> None:
        """Nobody judges their own pull request: the review is published as a comment."""
        head = await stage.push(FIX_BRANCH)
        opened = await stage.fixer.ensure_pull_request(
            stage.repo, OpenPullRequest(FIX_BRANCH, "main", "Fix", "Fixes it.", FIX)
        )
        wanted = PublishReview(event, "Well.", head, REVIEW, SAID[event])
        number = opened.pull_request.number
        receipt = await stage.fixer.ensure_review(stage.repo, number, wanted)
        assert receipt.event is ReviewEvent.COMMENT
        (found,) = await stage.fixer.our_reviews(stage.repo, number)
        assert found.state is ReviewState.COMMENTED

    async def test_dismissal(self, stage: Stage) -> None:
        """A withdrawn verdict stays withdrawn; a comment has nothing to withdraw."""
        given = await stage.reviewer.ensure_review(
            stage.repo, stage.number, review(stage, ReviewEvent.APPROVE)
        )
        args = stage.repo, stage.number, given.review_id, "A newer review says otherwise."
        assert await stage.reviewer.dismiss_review(*args) is Dismissal.DISMISSED
        assert await stage.reviewer.dismiss_review(*args) is Dismissal.ALREADY
        (found,) = await stage.reviewer.our_reviews(stage.repo, stage.number)
        assert found.state is ReviewState.DISMISSED

    async def test_comment_cannot_be_dismissed(self, stage: Stage) -> None:
        """GitHub refuses it; that is an answer, not an error."""
        given = await stage.reviewer.ensure_review(
            stage.repo, stage.number, review(stage, ReviewEvent.COMMENT)
        )
        outcome = await stage.reviewer.dismiss_review(
            stage.repo, stage.number, given.review_id, "No."
        )
        assert outcome is Dismissal.REFUSED


class TestThreads:
    async def _thread(self, stage: Stage) -> tuple[str, int]:
        wanted = review(stage, comments=(inline(),))
        given = await stage.reviewer.ensure_review(stage.repo, stage.number, wanted)
        (thread,) = (await stage.reviewer.discussion(stage.repo, stage.number)).threads
        return thread.node_id, given.comment_id(F1) or 0

    async def test_resolve(self, stage: Stage) -> None:
        """A thread of ours closes; closing it again changes nothing."""
        node, _ = await self._thread(stage)
        for _ in range(2):
            outcome = await stage.reviewer.resolve_threads(stage.repo, [node])
            assert outcome == {node: Resolution.RESOLVED}
        (thread,) = (await stage.reviewer.discussion(stage.repo, stage.number)).threads
        assert (thread.resolved, thread.resolved_by) == (True, "mergeward[bot]")

    async def test_unknown_thread(self, stage: Stage) -> None:
        """A thread that was deleted is gone, which is no failure."""
        outcome = await stage.reviewer.resolve_threads(stage.repo, ["PRRT_nothing"])
        assert outcome == {"PRRT_nothing": Resolution.GONE}

    async def test_conversation(self, stage: Stage) -> None:
        """What is said below comes with the threads: who, in which order, and whose it is."""
        await self._thread(stage)
        await stage.reviewer.ensure_comment(stage.repo, stage.number, STATUS, "Reviewing.")
        found = await stage.reviewer.discussion(stage.repo, stage.number)
        assert len(found.threads) == 1
        assert found.comments == await stage.reviewer.issue_comments(stage.repo, stage.number)
        assert [(c.author.login, c.ours, c.markers) for c in found.comments] == [
            ("mergeward[bot]", True, (STATUS,))
        ]

    async def test_one_of_several_that_is_gone(self, stage: Stage) -> None:
        """The others close all the same."""
        node, _ = await self._thread(stage)
        outcome = await stage.reviewer.resolve_threads(stage.repo, ["PRRT_nothing", node])
        assert outcome == {"PRRT_nothing": Resolution.GONE, node: Resolution.RESOLVED}
        (thread,) = (await stage.reviewer.discussion(stage.repo, stage.number)).threads
        assert thread.resolved

    async def test_reply_once(self, stage: Stage) -> None:
        """One answer per marker, also when the first one's answer was lost."""
        _, comment = await self._thread(stage)
        stage.lose_answer("ensure_reply")
        reply = ReplyToThread(comment, REPLY, "Fixed in this push.")
        for _ in range(3):
            try:
                await stage.reviewer.ensure_reply(stage.repo, stage.number, reply)
            except ForgeError:
                continue
        assert stage.reply_count() == 1

    async def test_quoted_marker_is_not_ours(self, stage: Stage) -> None:
        """A person who repeats our marker in an answer does not keep us from answering."""
        _, comment = await self._thread(stage)
        stage.answers("mallory", comment, with_marker("As they said:", REPLY))
        reply = ReplyToThread(comment, REPLY, "Fixed in this push.")
        given = await stage.reviewer.ensure_reply(stage.repo, stage.number, reply)
        assert given.created

    async def test_who_said_what(self, stage: Stage) -> None:
        """A conversation keeps its order and tells us, people and bots apart."""
        _, comment = await self._thread(stage)
        stage.answers("alice", comment, "I disagree.")
        (thread,) = (await stage.reviewer.discussion(stage.repo, stage.number)).threads
        told = [(c.author, c.by_bot, c.ours) for c in thread.comments]
        assert told == [("mergeward[bot]", True, True), ("alice", False, False)]
        (seen,) = (await stage.fixer.discussion(stage.repo, stage.number)).threads
        assert [c.ours for c in seen.comments] == [False, False]

    async def test_long_conversation(self, stage: Stage) -> None:
        """The deciding reply may be the hundred-and-first: all are read."""
        _, comment = await self._thread(stage)
        for n in range(160):
            stage.answers("alice", comment, f"answer {n}")
        (thread,) = (await stage.reviewer.discussion(stage.repo, stage.number)).threads
        assert len(thread.comments) == 161
        assert thread.comments[-1].body == "answer 159"


class TestComments:
    async def test_created_once_then_edited(self, stage: Stage) -> None:
        """The status comment is one comment for ever, known by marker or by id."""
        forge, args = stage.reviewer, (stage.repo, stage.number, STATUS)
        first = await forge.ensure_comment(*args, "Reviewing.")
        by_marker = await forge.ensure_comment(*args, "Still reviewing.")
        by_id = await forge.ensure_comment(*args, "Done.", comment_id=first.comment_id)
        assert (first.created, by_marker.created, by_id.created) == (True, False, False)
        assert {first.comment_id} == {by_marker.comment_id, by_id.comment_id}
        (comment,) = await forge.issue_comments(stage.repo, stage.number)
        assert comment.ours
        assert comment.markers == (STATUS,)
        assert comment.body == with_marker("Done.", STATUS)

    async def test_lost_answer(self, stage: Stage) -> None:
        """A 502 after the comment was made must not lead to a second one."""
        stage.lose_answer("ensure_comment")
        for _ in range(2):
            try:
                await stage.reviewer.ensure_comment(stage.repo, stage.number, STATUS, "Reviewing.")
            except ForgeError:
                continue
        assert len(await stage.reviewer.issue_comments(stage.repo, stage.number)) == 1

    async def test_copied_marker_is_not_ours(self, stage: Stage) -> None:
        """Somebody who copies our comment, marker and all, is somebody else: never edited."""
        stage.says("mallory", with_marker("Approved by me.", STATUS))
        given = await stage.reviewer.ensure_comment(stage.repo, stage.number, STATUS, "Reviewing.")
        assert given.created
        theirs, ours = await stage.reviewer.issue_comments(stage.repo, stage.number)
        assert (theirs.ours, theirs.markers) == (False, ())
        assert (ours.ours, ours.markers) == (True, (STATUS,))

    async def test_too_long(self, stage: Stage) -> None:
        """A text over GitHub's limit is cut and says so; its marker survives."""
        await stage.reviewer.ensure_comment(stage.repo, stage.number, STATUS, "word " * 20_000)
        (comment,) = await stage.reviewer.issue_comments(stage.repo, stage.number)
        assert len(comment.body) <= 65_536
        assert "shortened" in comment.body
        assert comment.markers == (STATUS,)

    async def test_reaction_twice(self, stage: Stage) -> None:
        """Reacting again is no error, and adds nothing."""
        comment = stage.says("alice", "/review")
        for _ in range(2):
            await stage.reviewer.react(stage.repo, comment, Reaction.EYES)
        assert stage.reactions(comment) == ["eyes"]

    async def test_labels(self, stage: Stage) -> None:
        """Labels are there or not, however often one asks; odd names reach the forge whole."""
        name = "area/ui #1 100%"
        for _ in range(2):
            await stage.reviewer.ensure_label(stage.repo, stage.number, name)
        pull = await stage.reviewer.pull_request(stage.repo, stage.number)
        assert pull.labels == (name,)
        for _ in range(2):
            await stage.reviewer.remove_label(stage.repo, stage.number, name)
        pull = await stage.reviewer.pull_request(stage.repo, stage.number)
        assert pull.labels == ()


class TestCheckRun:
    async def test_one_run_for_one_review(self, stage: Stage) -> None:
        """Progress and end are one check run, found by name, external id and head."""
        first = await stage.reviewer.ensure_check_run(stage.repo, check(stage))
        last = await stage.reviewer.ensure_check_run(stage.repo, check(stage, done=True))
        assert first == last
        (found,) = await stage.reviewer.our_checks(stage.repo, stage.head_sha)
        assert (found.name, found.external_id) == ("Mergeward", "run-1")
        assert (found.status, found.conclusion) == ("completed", "failure")

    async def test_annotations_never_double(self, stage: Stage) -> None:
        """GitHub appends annotations: 120 come in portions, and a repetition adds none."""
        wanted = check(stage, 120, done=True)
        given = await stage.reviewer.ensure_check_run(stage.repo, wanted)
        await stage.reviewer.ensure_check_run(stage.repo, wanted)
        assert stage.annotations() == (120,)
        assert (
            given.check_run_id
            == (await stage.reviewer.our_checks(stage.repo, stage.head_sha))[0].id
        )

    async def test_lost_answer(self, stage: Stage) -> None:
        """A 502 after the run was made must not lead to a second one."""
        stage.lose_answer("ensure_check_run")
        for _ in range(2):
            try:
                await stage.reviewer.ensure_check_run(stage.repo, check(stage, 60, done=True))
            except ForgeError:
                continue
        assert stage.annotations() == (60,)


class TestPullRequest:
    async def test_opened_once(self, stage: Stage) -> None:
        """One fix pull request per branch; a human's closing is not undone by a repeated job."""
        await stage.push(FIX_BRANCH)
        wanted = OpenPullRequest(FIX_BRANCH, "main", "Fix F1", "Fixes it.", FIX)
        first = await stage.fixer.ensure_pull_request(stage.repo, wanted)
        again = await stage.fixer.ensure_pull_request(stage.repo, wanted)
        assert (first.created, again.created) == (True, False)
        number = first.pull_request.number
        assert again.pull_request.number == number
        assert first.pull_request.author == (await stage.fixer.identity()).account
        await stage.close(number)
        closed = await stage.fixer.ensure_pull_request(stage.repo, wanted)
        assert (closed.created, closed.pull_request.number) == (False, number)
        assert closed.pull_request.state is PullRequestState.CLOSED

    async def test_nothing_to_propose(self, stage: Stage) -> None:
        """A branch without commits of its own is refused."""
        wanted = OpenPullRequest("main", "main", "Fix", "Nothing.", FIX)
        with pytest.raises(ForgeRejected):
            await stage.fixer.ensure_pull_request(stage.repo, wanted)


class TestApply:
    async def test_order_and_repetition(self, stage: Stage) -> None:
        """A tuple of effects applied twice leaves the forge as applying it once."""
        target = Target(stage.repo, stage.number)
        effects = (
            check(stage, 1, done=True),
            review(stage, comments=(inline(),)),
            SetStickyComment(STATUS, "Done."),
            Comment(Marker(MarkerKind.COMMENT, "escalated-1"), "A human is needed."),
        )
        first = await apply(stage.reviewer, target, effects)
        again = await apply(stage.reviewer, target, effects)
        assert len(first) == len(again) == 4
        assert first[0] == again[0]
        assert len(await stage.reviewer.our_reviews(stage.repo, stage.number)) == 1
        assert len(await stage.reviewer.issue_comments(stage.repo, stage.number)) == 2
        assert stage.annotations() == (1,)
