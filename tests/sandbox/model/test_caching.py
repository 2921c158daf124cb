"""Prompt caching as the providers publish it (app/sandbox/model/caching.py)."""

from __future__ import annotations

import pytest

from app.sandbox.model.caching import (
    CHAT_LIFE_S,
    LOOKBACK,
    Cached,
    PromptCache,
    Segment,
    least_tokens,
)

SONNET, OPUS = "claude-sonnet-4-5", "claude-opus-4-7"
LIFE = 300.0


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def cache(time: Time) -> PromptCache:
    """One character is one token."""
    return PromptCache(time, 1.0)


def text(tokens: int, letter: str = "a") -> Segment:
    return Segment(letter * tokens)


def point(tokens: int, letter: str = "a") -> Segment:
    return Segment(letter * tokens, LIFE)


def test_nothing_is_kept_without_a_breakpoint(cache: PromptCache) -> None:
    """Anthropic caches only what it is told to."""
    for _ in range(2):
        assert cache.explicit(SONNET, [text(5_000)]) == Cached()


def test_written_once_then_read(cache: PromptCache) -> None:
    """What stands behind the last breakpoint is neither."""
    prompt = [point(2_000), text(500, "q")]
    assert cache.explicit(SONNET, prompt) == Cached(0, 2_000)
    assert cache.explicit(SONNET, prompt) == Cached(2_000, 0)
    assert cache.explicit(OPUS, prompt) == Cached()


def test_a_longer_prompt_reads_what_it_shares(cache: PromptCache) -> None:
    """A conversation that goes on reads all that was, and writes only what is new."""
    cache.explicit(SONNET, [point(2_000), point(100, "q")])
    longer = [point(2_000), text(100, "q"), text(50, "r"), point(300, "s")]
    assert cache.explicit(SONNET, longer) == Cached(2_100, 350)


@pytest.mark.parametrize(
    ("change", "read"),
    [
        pytest.param([point(2_000, "b"), point(100, "q")], 0, id="beginning"),
        pytest.param([point(2_000), point(100, "z")], 2_000, id="behind-a-breakpoint"),
        pytest.param([text(1_000, "b"), point(1_000), point(100, "q")], 0, id="split-otherwise"),
    ],
)
def test_only_an_equal_prefix_is_read(cache: PromptCache, change: list[Segment], read: int) -> None:
    """To the letter, from the beginning."""
    cache.explicit(SONNET, [point(2_000), point(100, "q")])
    assert cache.explicit(SONNET, change).read == read


@pytest.mark.parametrize(
    ("model", "least"),
    [(SONNET, 1_024), ("claude-sonnet-4-6", 2_048), (OPUS, 4_096), ("claude-haiku-4-5", 4_096)],
)
def test_a_short_prefix_is_not_kept(cache: PromptCache, model: str, least: int) -> None:
    """Each model has its own minimum."""
    assert least_tokens(model) == least
    for size, read in ((least - 1, 0), (least, least)):
        cache.explicit(model, [point(size)])
        assert cache.explicit(model, [point(size)]).read == read


def test_five_minutes_from_the_last_use(cache: PromptCache, time: Time) -> None:
    """Reading renews it; after that it is gone and written again."""
    prompt = [point(2_000)]
    cache.explicit(SONNET, prompt)
    for moment in (299.0, 598.0):
        time.now = moment
        assert cache.explicit(SONNET, prompt) == Cached(2_000, 0)
    time.now = 898.0
    assert cache.explicit(SONNET, prompt) == Cached(0, 2_000)


def test_a_hit_is_looked_for_twenty_blocks_back(cache: PromptCache) -> None:
    """And no further."""
    cache.explicit(SONNET, [point(2_000)])
    near = [text(2_000), *(text(1, "n") for _ in range(LOOKBACK - 1)), point(1, "e")]
    far = [text(2_000), *(text(1, "f") for _ in range(LOOKBACK + 1)), point(1, "e")]
    assert cache.explicit(SONNET, near).read == 2_000
    assert cache.explicit(SONNET, far).read == 0


@pytest.mark.parametrize(
    ("shared", "read"),
    [(1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152), (5_000, 4_992)],
)
def test_openai_reads_in_steps(cache: PromptCache, shared: int, read: int) -> None:
    """From 1,024 tokens, in steps of 128, without being told."""
    cache.automatic("gpt-5.4", [text(shared), text(3_000, "x")])
    assert cache.automatic("gpt-5.4", [text(shared), text(3_000, "y")]).read == read


def test_openai_forgets(cache: PromptCache, time: Time) -> None:
    """After some minutes without use."""
    cache.automatic("gpt-5.4", [text(2_048)])
    time.now = CHAT_LIFE_S - 1
    assert cache.automatic("gpt-5.4", [text(2_048)]).read == 2_048
    time.now += CHAT_LIFE_S
    assert cache.automatic("gpt-5.4", [text(2_048)]).read == 0
