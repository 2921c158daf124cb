"""What the review story needs from outside, put together by the process that runs it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from app.agents.port import Runtime
from app.control.routing import Routing
from app.forges.port import Forge
from app.git.mirror import Mirrors

OpenForge = Callable[[], AbstractAsyncContextManager[Forge]]
"""Acts as one of our Apps for the length of a job."""


@dataclass(frozen=True, slots=True)
class ReviewServices:
    """`our_logins` are the bot logins of both our Apps; `runs` is where runs keep their files."""

    open_forge: OpenForge
    mirrors: Mirrors
    runtime: Runtime
    routing: Routing
    runs: Path
    our_logins: frozenset[str]
