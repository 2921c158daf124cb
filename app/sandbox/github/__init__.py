"""A double of GitHub: REST, GraphQL, git over HTTP and webhooks on loopback.

It keeps GitHub's own rules and words, so that a client that works here has met the refusals it
will meet there. State is in memory; the repositories are real git.
"""

from app.sandbox.github.config import (
    FIXER_PERMISSIONS,
    REVIEWER_EVENTS,
    REVIEWER_PERMISSIONS,
    AppConfig,
    DoubleConfig,
)
from app.sandbox.github.errors import ApiError
from app.sandbox.github.hooks import Delivery
from app.sandbox.github.limits import Faults
from app.sandbox.github.server import GitHubDouble
from app.sandbox.github.snapshot import CheckView, CommentView, PullView, ReviewView, ThreadView
from app.sandbox.github.state import ApiCall

__all__ = [
    "FIXER_PERMISSIONS",
    "REVIEWER_EVENTS",
    "REVIEWER_PERMISSIONS",
    "ApiCall",
    "ApiError",
    "AppConfig",
    "CheckView",
    "CommentView",
    "Delivery",
    "DoubleConfig",
    "Faults",
    "GitHubDouble",
    "PullView",
    "ReviewView",
    "ThreadView",
]
