"""What the story of a comment needs from outside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from app.forges.port import Forge
from app.git.mirror import Mirrors


@dataclass(frozen=True, slots=True)
class CommandServices:
    """`open_forge` acts as the reviewer App; `our_logins` are the bot logins of both our Apps."""

    open_forge: Callable[[], AbstractAsyncContextManager[Forge]]
    mirrors: Mirrors
    our_logins: frozenset[str]
