"""How fast one installation may be written to: pure state, asked before each request.

GitHub allows 80 content-creating requests a minute and 500 an hour, advises a second between them,
and may ban who persists. So we keep below, people's commands and closings go first, and while
GitHub itself says to wait nobody asks it again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PaceLimits:
    """DESIGN §7: at most `burst` writes at once, `per_second` after that, `per_minute` and
    `per_hour` in any such span. The last `kept` of the burst, and one in `kept_share` of each
    span, are for writes that somebody waits for."""

    burst: int = 8
    per_second: float = 1.0
    per_minute: int = 80
    per_hour: int = 500
    kept: int = 2
    kept_share: int = 10


DEFAULT_PACE = PaceLimits()
UNPACED = PaceLimits(burst=10**9, per_second=1e9, per_minute=10**9, per_hour=10**9)
"""For a host without such limits: an Enterprise Server has none unless somebody sets them."""


@dataclass(slots=True)
class Pace:
    """The writes of one installation, and how long GitHub wants to be left alone."""

    limits: PaceLimits = DEFAULT_PACE
    _tokens: float = field(init=False)
    _at: datetime | None = field(init=False, default=None)
    _recent: deque[datetime] = field(init=False, default_factory=deque)
    _held_until: datetime | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._tokens = float(self.limits.burst)

    def hold(self, until: datetime) -> None:
        """GitHub refuses everything until then."""
        if self._held_until is None or until > self._held_until:
            self._held_until = until

    def wait_to_read(self, now: datetime) -> float:
        """Seconds until GitHub may be asked anything; 0: now."""
        return _seconds(self._held_until, now)

    def take(self, now: datetime, *, urgent: bool) -> float:
        """Seconds until one write may go; 0: it goes now, and is counted."""
        self._refill(now)
        limits = self.limits
        wait = max(
            self.wait_to_read(now),
            self._until_token(0 if urgent else limits.kept),
            self._until_room(now, _MINUTE, limits.per_minute, urgent=urgent),
            self._until_room(now, _HOUR, limits.per_hour, urgent=urgent),
        )
        if wait > 0:
            return wait
        self._tokens -= 1
        self._recent.append(now)
        return 0.0

    def _refill(self, now: datetime) -> None:
        passed = (now - self._at).total_seconds() if self._at else 0.0
        self._at = max(now, self._at or now)
        gained = max(passed, 0.0) * self.limits.per_second
        self._tokens = min(float(self.limits.burst), self._tokens + gained)
        while self._recent and now - self._recent[0] >= _HOUR:
            self._recent.popleft()

    def _until_token(self, kept: int) -> float:
        return max(0.0, (1 + kept - self._tokens) / self.limits.per_second)

    def _until_room(self, now: datetime, span: timedelta, most: int, *, urgent: bool) -> float:
        """Seconds until fewer than `most` writes lie within the last `span`."""
        allowed = most if urgent else most - most // self.limits.kept_share
        if len(self._recent) < allowed:
            return 0.0
        return _seconds(self._recent[-allowed] + span, now)


def _seconds(until: datetime | None, now: datetime) -> float:
    return max(0.0, (until - now).total_seconds()) if until is not None else 0.0
