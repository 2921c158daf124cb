"""Shared cells in Redis. Each step is one script, so it is atomic and costs one round trip."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from app.errors import ConfigurationError
from app.state.port import Cell, StateUnavailable

TIMEOUT_S = 1.0
"""Seconds to connect and to answer. A model call waits for this, and a Redis in the same network
answers in a millisecond."""

_READ = """
local at = redis.call('TIME')
return {redis.call('GET', KEYS[1]), at[1], at[2]}
"""
_SWAP = """
local value = redis.call('GET', KEYS[1])
if value ~= (ARGV[1] == '1' and ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return 1
"""


class RedisCells:
    """Implements `app.state.port.Cells`. The clock is that of the Redis server.

    Keys begin with `prefix`, so that several installations may share a server. `clock` replaces
    the server's clock (the life spans of values stay on it).
    """

    def __init__(
        self, client: Redis, *, prefix: str = "mergeward:", clock: Callable[[], float] | None = None
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._clock = clock

    async def read(self, key: str) -> Cell:
        value, seconds, micros = await self._run(_READ, key)
        now = self._clock() if self._clock else int(seconds) + int(micros) / 1e6
        return Cell(value, now)

    async def swap(self, key: str, old: str | None, new: str, *, life_s: float) -> bool:
        life_ms = max(1, round(life_s * 1000))
        known = "0" if old is None else "1"
        return bool(await self._run(_SWAP, key, known, old or "", new, str(life_ms)))

    async def _run(self, script: str, key: str, *arguments: str) -> Any:
        try:
            return await self._client.eval(script, 1, f"{self._prefix}{key}", *arguments)
        except (RedisError, OSError, TimeoutError, UnicodeDecodeError) as error:
            # Their texts name hosts and ports, and some the whole address.
            raise StateUnavailable(f"Redis: {type(error).__name__}") from error


@asynccontextmanager
async def open_cells(
    url: str, *, prefix: str = "mergeward:", clock: Callable[[], float] | None = None
) -> AsyncIterator[RedisCells]:
    """Cells in the Redis at `url`, which need not answer now. Raises ConfigurationError when it is
    no address of a Redis."""
    try:
        client = Redis.from_url(
            url,
            decode_responses=True,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )
    except ValueError as error:
        raise ConfigurationError(
            "MERGEWARD_REDIS_URL must read redis://host:port/number, or rediss:// for TLS"
        ) from error
    try:
        yield RedisCells(client, prefix=prefix, clock=clock)
    finally:
        await client.aclose()
