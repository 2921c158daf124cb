"""What plugins are told of a run. Frozen, and without any secret."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from app.agents.prompt_context import KnownFinding, Remark
from app.domain.diff import FileChange
from app.domain.policy import Policy
from app.domain.runs import AgentName, Tier

ReadFile = Callable[[str], Awaitable[bytes | None]]
"""Reads a file of the repository by its path; None when there is none, or it may not be read."""


async def no_file(_path: str) -> bytes | None:
    """Reads nothing: for runs without a repository."""
    return None


class RunKind(StrEnum):
    """Where a run comes from: a pull request on a forge, a person's own checkout, or a fix task."""

    PULL_REQUEST = "pull_request"
    LOCAL = "local"
    FIX = "fix"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The change as it is known before anybody reads it. Every text is untrusted as it comes.

    `base_sha` is the commit that the change is compared with, `round_number` 1 for the first look.
    """

    kind: RunKind
    repository: str
    number: int | None = None
    title: str = ""
    body: str = ""
    author: str = ""
    base_ref: str = ""
    base_sha: str = ""
    head_ref: str = ""
    head_sha: str = ""
    labels: tuple[str, ...] = ()
    draft: bool = False
    from_fork: bool = False
    comments: tuple[Remark, ...] = ()
    findings: tuple[KnownFinding, ...] = ()
    previous_review: str = ""
    round_number: int = 1
    is_fix: bool = False
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True)
class RunView:
    """What is going to be reviewed, once that is known: without the noise, and without what is
    withheld from models. `read` reads the change's side of the repository by the same rules."""

    facts: RunFacts
    tier: Tier
    reviewers: tuple[AgentName, ...]
    changes: tuple[FileChange, ...]
    read: ReadFile
