"""What a GitHub double is started with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

REVIEWER_PERMISSIONS: Mapping[str, str] = {
    "metadata": "read",
    "contents": "write",
    "pull_requests": "write",
    "checks": "write",
    "issues": "write",
    "merge_queues": "read",
}
FIXER_PERMISSIONS: Mapping[str, str] = {
    "metadata": "read",
    "contents": "write",
    "pull_requests": "write",
    "issues": "write",
    "checks": "read",
    "actions": "read",
}
REVIEWER_EVENTS: tuple[str, ...] = (
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "issue_comment",
    "push",
)


@dataclass(frozen=True)
class AppConfig:
    """One GitHub App. `private_key` is PEM; None makes the double generate a 2048 bit RSA key.

    `webhook_url` None means the App has no webhook: its events are neither sent nor listed.
    """

    id: int
    slug: str
    client_id: str = ""
    name: str = ""
    webhook_url: str | None = None
    webhook_secret: str = ""
    private_key: str | None = None
    permissions: Mapping[str, str] = field(default_factory=lambda: dict(REVIEWER_PERMISSIONS))
    events: tuple[str, ...] = REVIEWER_EVENTS
    owner: str = "sandbox"


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class DoubleConfig:
    """How a double starts. Everything has a default that suits the demo.

    `directory` keeps the repositories (None: a temporary directory, removed at exit).
    `control_token` guards `/_sandbox` (None: random). `clock` gives the time of every timestamp.
    `rate_limit` is the primary limit per hour and installation; `content_per_minute` the
    secondary limit on content-creating requests (80 on github.com; None: not enforced).
    """

    apps: tuple[AppConfig, ...] = ()
    host: str = "127.0.0.1"
    port: int = 0
    directory: Path | None = None
    control_token: str | None = None
    clock: Callable[[], datetime] = _utc_now
    rate_limit: int = 5000
    content_per_minute: int | None = None
    token_lifetime_seconds: int = 3600
    webhook_timeout_seconds: float = 10.0
