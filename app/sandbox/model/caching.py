"""What of a prompt the provider had read before, accounted as the providers publish it.

Anthropic: only up to explicit breakpoints, at most four; a prefix shorter than the model's minimum
is not kept; a kept one lives five minutes (or an hour, if asked) from its last use; a hit is looked
for at each breakpoint and the twenty blocks before it. OpenAI: by itself, from 1,024 tokens in
steps of 128, for some minutes after the last use.
(platform.claude.com/docs "Prompt caching" and platform.openai.com/docs "Prompt caching", as of
2026-11.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

LOOKBACK = 20
"""Blocks before a breakpoint at which a kept prefix is still found."""
CHAT_LEAST, CHAT_STEP = 1_024, 128
CHAT_LIFE_S = 600.0
"""OpenAI says 5 to 10 minutes of inactivity."""

_LEAST_BY_WORD = (("haiku", 4_096), ("opus", 4_096), ("sonnet-4-6", 2_048))
_LEAST = 1_024


@dataclass(frozen=True, slots=True)
class Segment:
    """One block of a prompt in the provider's order. `ttl_s`: a breakpoint stands behind it."""

    text: str
    ttl_s: float | None = None


@dataclass(frozen=True, slots=True)
class Cached:
    """Tokens that were read from the cache, and tokens that were written to it."""

    read: int = 0
    written: int = 0


@dataclass(slots=True)
class _Kept:
    ttl_s: float
    until: float


class PromptCache:
    """Everything that was kept so far, for one account. Times are seconds of `monotonic`."""

    def __init__(self, monotonic: Callable[[], float], chars_per_token: float) -> None:
        self._now = monotonic
        self._chars = chars_per_token
        self._kept: dict[tuple[str, str], _Kept] = {}

    def explicit(self, model: str, segments: Sequence[Segment]) -> Cached:
        """Anthropic's way."""
        marks = [place for place, segment in enumerate(segments) if segment.ttl_s]
        if not marks:
            return Cached()
        prints, sizes = zip(*_prefixes(segment.text for segment in segments), strict=True)
        read_to = max((self._found(model, prints, mark) for mark in marks), default=-1)
        read = self._tokens(sizes[read_to]) if read_to >= 0 else 0
        if read_to >= 0:
            self._refresh(model, prints[read_to])
        written_to = -1
        for mark in marks:
            ttl = segments[mark].ttl_s
            if ttl and self._tokens(sizes[mark]) >= least_tokens(model):
                self._keep(model, prints[mark], ttl)
                written_to = mark
        written = self._tokens(sizes[written_to]) - read if written_to > read_to else 0
        return Cached(read, written)

    def automatic(self, model: str, segments: Sequence[Segment]) -> Cached:
        """OpenAI's way."""
        text = "".join(segment.text for segment in segments)
        step = int(CHAT_STEP * self._chars)
        pieces = (text[at : at + step] for at in range(0, len(text) - step + 1, step))
        prints = [name for name, _ in _prefixes(pieces)]
        known = 0
        while known < len(prints) and self._alive(model, prints[known]):
            known += 1
        for name in prints:
            self._keep(model, name, CHAT_LIFE_S)
        tokens = known * CHAT_STEP
        return Cached(read=tokens if tokens >= CHAT_LEAST else 0)

    def _found(self, model: str, prints: Sequence[str], mark: int) -> int:
        places = range(mark, max(-1, mark - LOOKBACK - 1), -1)
        return next((place for place in places if self._alive(model, prints[place])), -1)

    def _alive(self, model: str, name: str) -> bool:
        kept = self._kept.get((model, name))
        return kept is not None and kept.until > self._now()

    def _keep(self, model: str, name: str, ttl_s: float) -> None:
        self._kept[model, name] = _Kept(ttl_s, self._now() + ttl_s)

    def _refresh(self, model: str, name: str) -> None:
        kept = self._kept[model, name]
        kept.until = self._now() + kept.ttl_s

    def _tokens(self, chars: int) -> int:
        return int(chars / self._chars)


def least_tokens(model: str) -> int:
    """The shortest prefix that Anthropic keeps for the model."""
    return next((least for word, least in _LEAST_BY_WORD if word in model), _LEAST)


def _prefixes(texts: Iterator[str]) -> Iterator[tuple[str, int]]:
    """A fingerprint and the size of each prefix."""
    so_far, size = hashlib.sha256(), 0
    for text in texts:
        so_far.update(f"{len(text)}:".encode() + text.encode("utf-8", "surrogatepass"))
        size += len(text)
        yield so_far.hexdigest(), size
