"""A value that is fetched now and then, and kept when it cannot be fetched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.logs import get_logger, redact

log = get_logger(__name__)
T = TypeVar("T")

FRESH_S = 30.0
"""Seconds for which a value is not asked for again, also after a failure."""


@dataclass(slots=True)
class Remembered(Generic[T]):
    """The last good value of `load`. `what` names it in the log."""

    what: str
    load: Callable[[], Awaitable[T]]
    fresh_s: float = FRESH_S
    monotonic: Callable[[], float] = time.monotonic
    _value: T | None = None
    _asked: float | None = None
    _loading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get(self) -> T | None:
        """The value, asked for anew when it is old; the last good one when that fails, and None
        when there never was one. Who comes while it is asked for gets the old value at once."""
        if self._loading.locked() and self._value is not None:
            return self._value
        async with self._loading:
            if self._asked is None or self.monotonic() - self._asked >= self.fresh_s:
                await self._refresh()
            return self._value

    async def _refresh(self) -> None:
        try:
            self._value = await self.load()
        except Exception as error:
            log.warning(
                "could not be fetched, the last good value holds",
                what=self.what,
                has_one=self._value is not None,
                error=redact(str(error)),
            )
        self._asked = self.monotonic()
