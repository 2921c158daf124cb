"""What the command story needs from outside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from app.forges.port import Forge


@dataclass(frozen=True, slots=True)
class CommandServices:
    """`our_logins` are the bot logins of both our Apps."""

    open_forge: Callable[[], AbstractAsyncContextManager[Forge]]
    our_logins: frozenset[str]
