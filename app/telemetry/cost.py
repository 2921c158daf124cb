"""What tokens cost, in US dollars, by the published prices that genai-prices carries."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one model call; `uncached_input` excludes what the cache served or stored."""

    uncached_input: int
    cache_read: int
    cache_write: int
    output: int


def price_of(tokens: Tokens, *, provider: str, model: str) -> Decimal | None:
    """The call's price in US dollars, or None when the model's price is not known.

    Unknown is not zero: a model served under a private name has a price, we just do not know it.
    """
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=tokens.uncached_input + tokens.cache_read + tokens.cache_write,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write,
        output_tokens=tokens.output,
    )
    try:
        return Decimal(calc_price(usage, model, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None
