"""The effects of the Forge port, applied to memory and recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from app.domain.effects import (
    AddLabel,
    CheckReceipt,
    Comment,
    CommentReceipt,
    Dismissal,
    DismissReview,
    EditReview,
    Effect,
    OpenPullRequest,
    PublishReview,
    PullRequestReceipt,
    React,
    Reaction,
    RemoveLabel,
    ReplyToThread,
    Resolution,
    ResolveThread,
    ReviewEvent,
    ReviewReceipt,
    SetCheckRun,
    SetStickyComment,
)
from app.domain.forge import AppIdentity, IssueComment, PublishedCheck, PublishedReview, ReviewState
from app.domain.markers import Marker, MarkerKind, markers_of, with_marker
from app.domain.pull_request import PullRequest, PullRequestState, RepoRef
from app.errors import ForgeNotFound, ForgeRejected
from app.forges.recording.reads import RecordingReads
from app.forges.recording.world import CheckRecord, PullRecord, ReviewRecord, World

_MAX_BODY = 65_536
_STATES = {
    ReviewEvent.APPROVE: ReviewState.APPROVED,
    ReviewEvent.REQUEST_CHANGES: ReviewState.CHANGES_REQUESTED,
    ReviewEvent.COMMENT: ReviewState.COMMENTED,
}
_EVENTS = {state: event for event, state in _STATES.items()}


class RecordingForge(RecordingReads):
    """One App in a `World`. `may_resolve` False: the installation grants no contents write.

    `effects` is everything that was asked for, `written` what of it changed something.
    """

    def __init__(
        self,
        world: World,
        identity: AppIdentity,
        *,
        may_resolve: bool = True,
        outgoing: Callable[[str], str] = str,
    ) -> None:
        super().__init__(world, identity)
        self.may_resolve = may_resolve
        self.effects: list[Effect] = []
        self.written: list[Effect] = []
        self._outgoing = outgoing

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    def _asked(self, verb: str, effect: Effect) -> None:
        self.effects.append(effect)
        self._fault(verb)

    def _wrote(self, verb: str, effect: Effect) -> None:
        self.written.append(effect)
        self._fault(verb, after=True)

    def _body(self, body: str, marker: Marker) -> str:
        return with_marker(self._outgoing(body), marker, limit=_MAX_BODY)

    async def ensure_check_run(
        self, repo: RepoRef, check: SetCheckRun, *, maybe_published: bool = True
    ) -> CheckReceipt:
        self._asked("ensure_check_run", check)
        found = self._check(check, maybe_published)
        if found is None:
            sha, external = check.head_sha, check.external_id
            told = PublishedCheck(self.world.next_id(), check.name, sha, external, "", None)
            found = CheckRecord(self.me.app_id, told, check)
            self.world.checks.append(found)
        shown = found.told.annotations
        found.shown = check
        found.told = replace(
            found.told,
            status=check.status.value,
            conclusion=check.conclusion.value if check.conclusion else None,
            annotations=max(shown, len(check.annotations)),
        )
        self._wrote("ensure_check_run", check)
        return CheckReceipt(found.told.id)

    def _check(self, check: SetCheckRun, maybe_published: bool) -> CheckRecord | None:
        wanted = check.name, check.external_id, check.head_sha
        for known in self.world.checks:
            told = known.told
            by_id = check.check_run_id is not None and told.id == check.check_run_id
            by_name = maybe_published and (told.name, told.external_id, told.head_sha) == wanted
            if known.app_id == self.me.app_id and (by_id or by_name):
                return known
        return None

    async def ensure_review(
        self, repo: RepoRef, number: int, review: PublishReview, *, maybe_published: bool = True
    ) -> ReviewReceipt:
        self._asked("ensure_review", review)
        pull = self.world.pull(repo, number)
        found = self._review(pull, review.marker) if maybe_published else None
        if found is not None:
            event = _EVENTS.get(found.told.state, review.event)
            ids, unplaced = found.comment_ids, found.unplaced
            return ReviewReceipt(found.told.id, event, ids, created=False, unplaced=unplaced)
        pull.check_anchors(review)
        own = pull.value.author.id == self.me.account.id
        event = ReviewEvent.COMMENT if own else review.event
        record = self._publish(pull, review, event)
        self._wrote("ensure_review", review)
        ids, unplaced = record.comment_ids, record.unplaced
        return ReviewReceipt(record.told.id, event, ids, unplaced=unplaced)

    async def edit_review(self, repo: RepoRef, number: int, edit: EditReview) -> None:
        self._asked("edit_review", edit)
        reviews = self.world.pull(repo, number).reviews
        found = next((known for known in reviews if known.told.id == edit.review_id), None)
        if found is None:
            raise ForgeNotFound(f"there is no review {edit.review_id}", status=404)
        body = self._body(edit.body, edit.marker)
        if found.told.body != body:
            found.told = replace(found.told, body=body, markers=markers_of(body))
            self._wrote("edit_review", edit)

    def _review(self, pull: PullRecord, marker: Marker) -> ReviewRecord | None:
        mine = (known for known in pull.reviews if known.author == self.me.account.id)
        return next((known for known in mine if marker in known.told.markers), None)

    def _publish(self, pull: PullRecord, review: PublishReview, event: ReviewEvent) -> ReviewRecord:
        ids, unplaced = [], []
        for comment in review.comments:
            hidden = self.world.take_hidden(comment.path, comment.line)
            if hidden is not None:
                unplaced.append(comment.marker.id)
            if hidden is None or hidden.kept:
                place = comment.path, comment.line if hidden is None else None
                text = self._body(comment.body, comment.marker)
                comment_id = self.world.open_thread(pull, self.me.account, place, text)
                ids.append((comment.marker.id, comment_id))
        body = self._body(review.body, review.marker)
        told = PublishedReview(
            self.world.next_id(), _STATES[event], review.head_sha, body, markers_of(body)
        )
        record = ReviewRecord(self.me.account.id, told, tuple(ids), tuple(unplaced))
        pull.reviews.append(record)
        return record

    async def ensure_comment(
        self,
        repo: RepoRef,
        number: int,
        marker: Marker,
        body: str,
        *,
        comment_id: int | None = None,
        maybe_published: bool = True,
    ) -> CommentReceipt:
        sticky = marker.kind is MarkerKind.STATUS
        effect = SetStickyComment(marker, body, comment_id) if sticky else Comment(marker, body)
        self._asked("ensure_comment", effect)
        pull, text = self.world.pull(repo, number), self._body(body, marker)
        look = maybe_published or comment_id is not None
        found = self._comment(pull, marker, comment_id) if look else None
        if found is None:
            new = IssueComment(self.world.next_id(), self.me.account, text, ours=True)
            pull.comments.append(new)
            self._wrote("ensure_comment", effect)
            return CommentReceipt(new.id, created=True)
        if found.body != text:
            pull.comments[pull.comments.index(found)] = replace(found, body=text)
            self._wrote("ensure_comment", effect)
        return CommentReceipt(found.id, created=False)

    def _comment(
        self, pull: PullRecord, marker: Marker, comment_id: int | None
    ) -> IssueComment | None:
        mine = [known for known in pull.comments if known.author.id == self.me.account.id]
        by_id = (known for known in mine if known.id == comment_id)
        by_marker = (known for known in mine if marker in markers_of(known.body))
        return next(by_id, None) or next(by_marker, None)

    async def ensure_reply(
        self, repo: RepoRef, number: int, reply: ReplyToThread, *, maybe_published: bool = True
    ) -> CommentReceipt:
        self._asked("ensure_reply", reply)
        self.world.pull(repo, number)
        thread = self.world.thread_of(repo, reply.comment_id)
        for author, known in thread.comments[1:] if maybe_published else ():
            if author == self.me.account.id and reply.marker in markers_of(known.body):
                return CommentReceipt(known.id, created=False)
        text = self._body(reply.body, reply.marker)
        new = self.world.reply(thread, self.me.account, text)
        self._wrote("ensure_reply", reply)
        return CommentReceipt(new, created=True)

    async def ensure_pull_request(
        self, repo: RepoRef, wanted: OpenPullRequest, *, maybe_published: bool = True
    ) -> PullRequestReceipt:
        self._asked("ensure_pull_request", wanted)
        found = self._pull(repo, wanted)
        if found is not None:
            return PullRequestReceipt(found, created=False)
        head = self.world.branches.get((repo.repository_id, wanted.head))
        base = self.world.branches.get((repo.repository_id, wanted.base), "")
        if head is None or head == base:
            between = f"No commits between {wanted.base} and {wanted.head}"
            raise ForgeRejected(f"GitHub answered 422: Validation Failed: {between}", status=422)
        pull = self._proposal(repo, wanted, head, base)
        self.world.put_pull(repo, pull)
        self._wrote("ensure_pull_request", wanted)
        return PullRequestReceipt(pull, created=True)

    def _proposal(
        self, repo: RepoRef, wanted: OpenPullRequest, head: str, base: str
    ) -> PullRequest:
        known = self.world.repositories.get(repo.repository_id)
        numbers = [pull.number for pull in self.world.pulls_of(repo)]
        return PullRequest(
            number=max(numbers, default=0) + 1,
            title=self._outgoing(wanted.title),
            body=self._body(wanted.body, wanted.marker),
            author=self.me.account,
            state=PullRequestState.OPEN,
            draft=False,
            head_ref=wanted.head,
            head_sha=head,
            head_repo=repo.full_name,
            base_ref=wanted.base,
            base_sha=base,
            default_branch=known.default_branch if known else wanted.base,
        )

    def _pull(self, repo: RepoRef, wanted: OpenPullRequest) -> PullRequest | None:
        between = wanted.head, wanted.base
        pulls = [p for p in self.world.pulls_of(repo) if (p.head_ref, p.base_ref) == between]
        is_open = (pull for pull in pulls if pull.state is PullRequestState.OPEN)
        own = (pull for pull in pulls if pull.author.id == self.me.account.id)
        past = (pull for pull in own if wanted.marker in markers_of(pull.body))
        return next(is_open, None) or next(past, None)

    async def ensure_label(self, repo: RepoRef, number: int, name: str) -> None:
        self._asked("ensure_label", AddLabel(name))
        pull = self.world.pull(repo, number)
        if name not in pull.value.labels:
            pull.value = replace(pull.value, labels=(*pull.value.labels, name))
            self._wrote("ensure_label", AddLabel(name))

    async def remove_label(self, repo: RepoRef, number: int, name: str) -> None:
        self._asked("remove_label", RemoveLabel(name))
        pull = self.world.pull(repo, number)
        if name in pull.value.labels:
            kept = tuple(label for label in pull.value.labels if label != name)
            pull.value = replace(pull.value, labels=kept)
            self._wrote("remove_label", RemoveLabel(name))

    async def dismiss_review(
        self, repo: RepoRef, number: int, review_id: int, message: str
    ) -> Dismissal:
        effect = DismissReview(review_id, message)
        self._asked("dismiss_review", effect)
        reviews = self.world.pull(repo, number).reviews
        found = next((known for known in reviews if known.told.id == review_id), None)
        if found is None:
            raise ForgeNotFound(f"there is no review {review_id}", status=404)
        if found.told.state is ReviewState.DISMISSED:
            return Dismissal.ALREADY
        if found.told.state is ReviewState.COMMENTED:
            return Dismissal.REFUSED
        found.told = replace(found.told, state=ReviewState.DISMISSED)
        self._wrote("dismiss_review", effect)
        return Dismissal.DISMISSED

    async def resolve_threads(
        self, repo: RepoRef, node_ids: Sequence[str]
    ) -> Mapping[str, Resolution]:
        return {node_id: self._resolve(repo, node_id) for node_id in node_ids}

    def _resolve(self, repo: RepoRef, node_id: str) -> Resolution:
        effect = ResolveThread(node_id)
        self._asked("resolve_threads", effect)
        if not self.may_resolve:
            return Resolution.NOT_GRANTED
        try:
            thread = self.world.thread(repo, node_id)
        except ForgeNotFound:
            return Resolution.GONE
        if thread.resolved_by is None:
            thread.resolved_by = self.me.account.login
            self._wrote("resolve_threads", effect)
        return Resolution.RESOLVED

    async def react(
        self, repo: RepoRef, comment_id: int, reaction: Reaction, *, inline: bool = False
    ) -> None:
        effect = React(comment_id, reaction, inline)
        self._asked("react", effect)
        if (comment_id, reaction) not in self.world.reactions:
            self.world.reactions.append((comment_id, reaction))
            self._wrote("react", effect)
