"""Everything we may write on a forge, as values.

A story decides on a tuple of effects; `app.forges.apply` is the only interpreter. Each effect is
idempotent: what it makes is found again by its marker (a check run by its name, external id and
head), so applying the same tuple twice changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.domain.markers import Marker
from app.domain.permits import SaidVerdict, approves
from app.domain.pull_request import PullRequest

CHECK_NAME = "Mergeward"
"""The name of our check run; rulesets require it by this name and our App's id."""

NEEDS_HUMAN = "mergeward:needs-human"
"""The label of an escalation."""


class ReviewEvent(StrEnum):
    """What a review says, in the spelling of GitHub's API."""

    APPROVE = "APPROVE"
    REQUEST_CHANGES = "REQUEST_CHANGES"
    COMMENT = "COMMENT"


class Side(StrEnum):
    """RIGHT: an added or context line by its new number; LEFT: a deleted line by its old one."""

    LEFT = "LEFT"
    RIGHT = "RIGHT"


@dataclass(frozen=True, slots=True)
class InlineComment:
    """A comment on lines inside a hunk of the reviewed diff.

    Multi-line: `start_line` < `line`, both in one hunk and on one side. An equal `start_line` is
    the same as none.
    """

    path: str
    line: int
    body: str
    marker: Marker
    side: Side = Side.RIGHT
    start_line: int | None = None


@dataclass(frozen=True, slots=True)
class PublishReview:
    """One review with all its inline comments, in one request.

    One comment that GitHub can't anchor refuses the whole (ForgeRejected). `body` may be empty only
    for APPROVE. `verdict` is what the guards said: without their approval there is no APPROVE, and
    against it no REQUEST_CHANGES (ValueError); a COMMENT may say anything.
    """

    event: ReviewEvent
    body: str
    head_sha: str
    marker: Marker
    verdict: SaidVerdict
    comments: tuple[InlineComment, ...] = ()

    def __post_init__(self) -> None:
        approved = approves(self.verdict)
        if self.event is not ReviewEvent.COMMENT and (
            (self.event is ReviewEvent.APPROVE) is not approved
        ):
            raise _contradicts(self.event, self.verdict)


class CheckStatus(StrEnum):
    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class CheckConclusion(StrEnum):
    """A required check lets a merge pass on SUCCESS, NEUTRAL and SKIPPED."""

    SUCCESS = "success"
    NEUTRAL = "neutral"
    SKIPPED = "skipped"
    FAILURE = "failure"
    ACTION_REQUIRED = "action_required"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


class AnnotationLevel(StrEnum):
    NOTICE = "notice"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Annotation:
    """A remark of a check run on lines of a file (1-based, inclusive)."""

    path: str
    start_line: int
    end_line: int
    level: AnnotationLevel
    message: str
    title: str = ""


_LABEL, _DESCRIPTION, _IDENTIFIER, _MAX_ACTIONS = 20, 40, 20, 3
"""GitHub's limits for the buttons of a check run."""


@dataclass(frozen=True, slots=True)
class CheckAction:
    """A button of a check run, shown once it is completed.

    ValueError beyond 20, 40 and 20 characters.
    """

    label: str
    description: str
    identifier: str

    def __post_init__(self) -> None:
        lengths = (len(self.label), len(self.description), len(self.identifier))
        if any(a > b for a, b in zip(lengths, (_LABEL, _DESCRIPTION, _IDENTIFIER), strict=True)):
            raise ValueError(f"the button {self.label!r} has a text longer than GitHub allows")


@dataclass(frozen=True, slots=True)
class SetCheckRun:
    """The check run of one review run, as it should look now.

    `external_id` names the run it belongs to and never changes. `conclusion` is set exactly when
    `status` is COMPLETED, else ValueError. Annotations can only be added: later ones of the same
    check extend the earlier tuple. `check_run_id` saves the search when it is known. `verdict` is
    what the guards said of the head: there is no SUCCESS without their approval (ValueError).
    """

    head_sha: str
    external_id: str
    status: CheckStatus
    title: str
    summary: str
    conclusion: CheckConclusion | None = None
    text: str = ""
    annotations: tuple[Annotation, ...] = ()
    actions: tuple[CheckAction, ...] = ()
    name: str = CHECK_NAME
    details_url: str | None = None
    check_run_id: int | None = None
    verdict: SaidVerdict | None = None

    def __post_init__(self) -> None:
        if (self.conclusion is not None) is not (self.status is CheckStatus.COMPLETED):
            raise ValueError(f"status {self.status} and conclusion {self.conclusion} disagree")
        if len(self.actions) > _MAX_ACTIONS:
            raise ValueError(f"a check run has at most {_MAX_ACTIONS} buttons")
        approved = self.verdict is not None and approves(self.verdict)
        if self.conclusion is CheckConclusion.SUCCESS and not approved:
            raise _contradicts(self.conclusion, self.verdict)


def _contradicts(word: StrEnum, said: SaidVerdict | None) -> ValueError:
    if said is None:
        return ValueError(f"{word.name} needs a verdict of loop_guards, and there is none")
    return ValueError(f"{word.name} is not what loop_guards said: {said.verdict} ({said.reason})")


@dataclass(frozen=True, slots=True)
class SetStickyComment:
    """The one status comment of a pull request: created once, edited ever after.

    `comment_id` saves the search when it is known.
    """

    marker: Marker
    body: str
    comment_id: int | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment in the conversation, said once."""

    marker: Marker
    body: str


@dataclass(frozen=True, slots=True)
class ReplyToThread:
    """An answer in a review thread; `comment_id` is the thread's first comment."""

    comment_id: int
    marker: Marker
    body: str


@dataclass(frozen=True, slots=True)
class ResolveThread:
    """Resolve a thread. Not granted to us: `otherwise` is said in it instead, if given."""

    node_id: str
    otherwise: ReplyToThread | None = None


@dataclass(frozen=True, slots=True)
class EditReview:
    """Give a published review of ours another body; its event and comments stay."""

    review_id: int
    marker: Marker
    body: str


@dataclass(frozen=True, slots=True)
class AddLabel:
    name: str


@dataclass(frozen=True, slots=True)
class RemoveLabel:
    name: str


@dataclass(frozen=True, slots=True)
class DismissReview:
    """Withdraw an earlier approval or request for changes of ours. Already dismissed is fine."""

    review_id: int
    message: str


class Reaction(StrEnum):
    EYES = "eyes"
    ROCKET = "rocket"
    PLUS_ONE = "+1"
    MINUS_ONE = "-1"
    CONFUSED = "confused"


@dataclass(frozen=True, slots=True)
class React:
    """A reaction to a comment of the conversation (`inline` False) or of a thread (True)."""

    comment_id: int
    reaction: Reaction
    inline: bool = False


@dataclass(frozen=True, slots=True)
class OpenPullRequest:
    """Propose branch `head` of the repository itself for `base`; an open one for it is reused."""

    head: str
    base: str
    title: str
    body: str
    marker: Marker


Effect = (
    PublishReview
    | EditReview
    | SetCheckRun
    | SetStickyComment
    | Comment
    | ReplyToThread
    | ResolveThread
    | AddLabel
    | RemoveLabel
    | DismissReview
    | React
    | OpenPullRequest
)


class Resolution(StrEnum):
    """What became of resolving a thread."""

    RESOLVED = "resolved"
    NOT_GRANTED = "not_granted"
    GONE = "gone"


class Dismissal(StrEnum):
    """What became of dismissing a review. REFUSED: a branch rule forbids it, or it is a comment."""

    DISMISSED = "dismissed"
    ALREADY = "already"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ReviewReceipt:
    """A published review. `event` is what was sent: COMMENT where we may not judge our own work.

    `comment_ids` maps the marker id of each inline comment to its id on the forge. `unplaced` are
    the marker ids of those that were sent and stand on no line: the forge made nothing of them, or
    a thread that nobody sees (which still has its id, since an open one may keep a merge waiting).
    `created` is False when the review was there already.
    """

    review_id: int
    event: ReviewEvent
    comment_ids: tuple[tuple[str, int], ...] = ()
    created: bool = True
    unplaced: tuple[str, ...] = ()

    def comment_id(self, marker: Marker) -> int | None:
        """The forge's id of the inline comment with this marker, None when it is not there."""
        return dict(self.comment_ids).get(marker.id)


@dataclass(frozen=True, slots=True)
class CheckReceipt:
    check_run_id: int


@dataclass(frozen=True, slots=True)
class CommentReceipt:
    """A comment or reply; `created` is False when it was there already (edited or not)."""

    comment_id: int
    created: bool


@dataclass(frozen=True, slots=True)
class ThreadReceipt:
    """`reply` is what was said instead, when resolving was not granted."""

    resolution: Resolution
    reply: CommentReceipt | None = None


@dataclass(frozen=True, slots=True)
class DismissalReceipt:
    outcome: Dismissal


@dataclass(frozen=True, slots=True)
class PullRequestReceipt:
    pull_request: PullRequest
    created: bool


@dataclass(frozen=True, slots=True)
class Done:
    """The effect holds; there is nothing to remember of it."""


Receipt = (
    ReviewReceipt
    | CheckReceipt
    | CommentReceipt
    | ThreadReceipt
    | DismissalReceipt
    | PullRequestReceipt
    | Done
)
