"""The double's memory: accounts, Apps, repositories, pull requests and what hangs on them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey


class Kind(StrEnum):
    """GitHub's account types."""

    USER = "User"
    BOT = "Bot"
    ORGANIZATION = "Organization"


class Side(StrEnum):
    """LEFT is the old numbering, RIGHT the new one."""

    LEFT = "LEFT"
    RIGHT = "RIGHT"


class ReviewState(StrEnum):
    """States of a review as REST spells them; webhooks spell them in lower case."""

    PENDING = "PENDING"
    COMMENTED = "COMMENTED"
    APPROVED = "APPROVED"
    CHANGES_REQUESTED = "CHANGES_REQUESTED"
    DISMISSED = "DISMISSED"


@dataclass(eq=False)
class Account:
    """A user, a bot or an organisation; `token` is a person's classic token."""

    id: int
    login: str
    kind: Kind
    app_id: int | None = None
    token: str = ""

    @property
    def graphql_login(self) -> str:
        """GraphQL shows bots without the suffix `[bot]`."""
        return self.login.removesuffix("[bot]")


@dataclass(eq=False)
class App:
    """A registered GitHub App with its bot account and its one webhook."""

    id: int
    slug: str
    name: str
    client_id: str
    private_key: str
    public_key: RSAPublicKey
    permissions: dict[str, str]
    events: tuple[str, ...]
    owner: Account
    bot: Account
    hook_id: int
    webhook_url: str | None
    webhook_secret: str
    created_at: datetime


@dataclass(eq=False)
class Installation:
    """An App on an account; `repositories` holds ids, None means all of the account."""

    id: int
    app: App
    account: Account
    repositories: set[int] | None
    permissions: dict[str, str]
    created_at: datetime
    suspended_at: datetime | None = None


@dataclass(frozen=True)
class Reaction:
    id: int
    user: Account
    content: str
    created_at: datetime


@dataclass(eq=False)
class Label:
    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(eq=False)
class IssueComment:
    id: int
    user: Account
    body: str
    created_at: datetime
    updated_at: datetime
    via_app: App | None = None
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(eq=False)
class Review:
    id: int
    user: Account
    state: ReviewState
    body: str
    commit_id: str
    created_at: datetime
    submitted_at: datetime | None = None


@dataclass(frozen=True)
class Anchor:
    """Where a comment sits: `start_line` None for one line; all None for a whole file."""

    path: str
    line: int | None = None
    side: Side = Side.RIGHT
    start_line: int | None = None
    start_side: Side | None = None

    @property
    def is_file(self) -> bool:
        return self.line is None


@dataclass(eq=False)
class ReviewComment:
    """An inline comment; `current` is None once outdated, `original` never changes."""

    id: int
    review: Review
    user: Account
    body: str
    original: Anchor
    current: Anchor | None
    original_commit_id: str
    commit_id: str
    original_position: int
    position: int | None
    diff_hunk: str
    created_at: datetime
    updated_at: datetime
    reply_to: int | None = None
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(eq=False)
class Thread:
    """A resolvable conversation: the first comment and its replies."""

    id: int
    node_id: str
    comments: list[ReviewComment]
    resolved_by: Account | None = None


@dataclass(eq=False)
class PullRequest:
    id: int
    number: int
    repository: Repository
    title: str
    body: str | None
    author: Account
    head_ref: str
    head_sha: str
    head_repository: Repository | None
    base_ref: str
    base_sha: str
    draft: bool
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    merged_at: datetime | None = None
    merged_by: Account | None = None
    merge_commit_sha: str | None = None
    test_merge_sha: str | None = None
    maintainer_can_modify: bool = False
    locked: bool = False
    labels: list[Label] = field(default_factory=list)
    comments: list[IssueComment] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.closed_at is None

    @property
    def review_comments(self) -> list[ReviewComment]:
        """Every inline comment, oldest first, those of pending reviews included."""
        found = [comment for thread in self.threads for comment in thread.comments]
        return sorted(found, key=lambda comment: comment.id)

    @property
    def submitted_comments(self) -> list[ReviewComment]:
        """Inline comments that everybody sees."""
        return [c for c in self.review_comments if c.review.state is not ReviewState.PENDING]


@dataclass(eq=False)
class CheckRun:
    """`output` and `actions` are kept as they were sent; annotations only ever grow."""

    id: int
    app: App
    name: str
    head_sha: str
    status: str
    conclusion: str | None
    external_id: str
    details_url: str | None
    started_at: datetime
    completed_at: datetime | None
    suite_id: int
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations: list[dict[str, object]] = field(default_factory=list)
    actions: list[dict[str, object]] = field(default_factory=list)


@dataclass(eq=False)
class Repository:
    id: int
    owner: Account
    name: str
    path: Path
    default_branch: str
    private: bool
    created_at: datetime
    pushed_at: datetime
    archived: bool = False
    parent: Repository | None = None
    levels: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    pulls: dict[int, PullRequest] = field(default_factory=dict)
    checks: list[CheckRun] = field(default_factory=list)
    suites: dict[tuple[str, int], int] = field(default_factory=dict)
    required_checks: dict[str, list[tuple[str, int | None]]] = field(default_factory=dict)
    next_number: int = 1
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    def level_of(self, account: Account) -> str:
        """`admin`, `write`, `read` or `none`."""
        if account is self.owner:
            return "admin"
        return self.levels.get(account.login.lower(), "none")


@dataclass(frozen=True)
class ApiCall:
    """One request answered: the ledger that benchmarks count."""

    method: str
    path: str
    status: int
    actor: str
    app: str | None
    creates_content: bool
    at: datetime
    seconds: float
