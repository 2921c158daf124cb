"""Installation tokens: as narrow as the task, minted once, forgotten when they stop working."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from weakref import WeakKeyDictionary

from app.clock import Clock
from app.forges.github.errors import PermissionMissing

_MARGIN = timedelta(minutes=5)
"""A token is not handed out in its last minutes: a clone or an upload has to end within it."""
_FRESH = timedelta(seconds=5)
"""GitHub's servers learn of a token one after the other; Octokit waits as long."""
_REFUSAL_MEMORY = timedelta(minutes=10)
_LEVELS = ("none", "read", "write", "admin")


class Scope(Enum):
    """What a token may do. Each is minted for one repository, METADATA for the installation."""

    METADATA = "metadata"
    WORK = "work"
    JUDGE = "judge"
    RESOLVE = "resolve"
    CLONE = "clone"
    PUSH = "push"

    @property
    def permissions(self) -> dict[str, str]:
        return dict(_PERMISSIONS[self])

    @property
    def one_repository(self) -> bool:
        return self is not Scope.METADATA

    @property
    def may_shrink(self) -> bool:
        """Whether a token with less than this is still of use: some calls fail, each by name."""
        return self in (Scope.WORK, Scope.JUDGE)


_PERMISSIONS: dict[Scope, dict[str, str]] = {
    Scope.METADATA: {"metadata": "read"},
    Scope.WORK: {"contents": "read", "pull_requests": "write", "issues": "write"},
    Scope.JUDGE: {
        "contents": "read",
        "pull_requests": "write",
        "issues": "write",
        "checks": "write",
    },
    Scope.RESOLVE: {"contents": "write", "pull_requests": "write"},
    Scope.CLONE: {"contents": "read"},
    Scope.PUSH: {"contents": "write"},
}


@dataclass(frozen=True, slots=True)
class TokenKey:
    """Which token: `repository_id` is None for the whole installation."""

    installation_id: int
    repository_id: int | None
    scope: Scope


@dataclass(frozen=True, slots=True)
class Token:
    """One token as GitHub gave it. `permissions` is what was granted, perhaps less than asked."""

    value: str = field(repr=False)
    permissions: Mapping[str, str]
    minted_at: datetime
    expires_at: datetime

    def is_fresh(self, now: datetime) -> bool:
        """Whether GitHub may still refuse it because not all its servers know it."""
        return now - self.minted_at < _FRESH

    def covers(self, alternatives: tuple[dict[str, str], ...]) -> bool:
        """Whether it has one of the permission sets that a call accepts; True if none are told."""
        return not alternatives or any(
            all(_rank(self.permissions.get(name)) >= _rank(level) for name, level in one.items())
            for one in alternatives
        )


def _rank(level: str | None) -> int:
    return _LEVELS.index(level) if level in _LEVELS else 0


def at_most(wanted: Mapping[str, str], granted: Mapping[str, str]) -> dict[str, str]:
    """`wanted`, lowered to what an installation has granted."""
    lowered = {
        name: _LEVELS[min(_rank(level), _rank(granted.get(name)))] for name, level in wanted.items()
    }
    return {name: level for name, level in lowered.items() if level != "none"}


Mint = Callable[[TokenKey], Awaitable[Token]]


class TokenVault:
    """Tokens of one App on one host, shared by all jobs of a process.

    Twenty jobs that need the same token at once cause one request. Usable from several event loops
    one after the other (a worker that runs `asyncio.run` per job).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens: dict[TokenKey, Token] = {}
        self._refusals: dict[TokenKey, tuple[datetime, str]] = {}
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[TokenKey, asyncio.Lock]] = (
            WeakKeyDictionary()
        )

    async def token(self, key: TokenKey, mint: Mint) -> Token:
        """A token with at least five minutes left. Raises what `mint` raises.

        A token that the installation does not grant is not asked for again for ten minutes.
        """
        usable = self._usable(key)
        if usable is not None:
            return usable
        async with self._lock(key):
            usable = self._usable(key)
            if usable is None:
                self._forget_expired()
                usable = self._tokens[key] = await self._minted(key, mint)
        return usable

    async def _minted(self, key: TokenKey, mint: Mint) -> Token:
        refusal = self._refusals.get(key)
        if refusal is not None and self._clock.now() - refusal[0] < _REFUSAL_MEMORY:
            raise PermissionMissing(refusal[1])
        try:
            return await mint(key)
        except PermissionMissing as error:
            self._refusals[key] = (self._clock.now(), str(error))
            raise

    def drop(self, key: TokenKey, token: Token) -> None:
        """Forget `token`, unless another job has replaced it already."""
        if self._tokens.get(key) is token:
            del self._tokens[key]

    def _usable(self, key: TokenKey) -> Token | None:
        token = self._tokens.get(key)
        return token if token and token.expires_at - self._clock.now() > _MARGIN else None

    def _forget_expired(self) -> None:
        now = self._clock.now()
        self._tokens = {k: t for k, t in self._tokens.items() if t.expires_at > now}

    def _lock(self, key: TokenKey) -> asyncio.Lock:
        locks = self._locks.setdefault(asyncio.get_running_loop(), {})
        return locks.setdefault(key, asyncio.Lock())
