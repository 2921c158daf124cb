"""What the built-in fixer needs from outside."""

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


@dataclass(frozen=True, slots=True)
class FixerServices:
    """`open_forge` acts as the fixer App, `open_reviewer` as the reviewer App: words about a task
    are the reviewer's. `work` is where throwaway checkouts live."""

    open_forge: OpenForge
    open_reviewer: OpenForge
    mirrors: Mirrors
    runtime: Runtime
    routing: Routing
    work: Path
