"""What tokens cost, in US dollars: by the operator's own table, else by the published prices that
genai-prices carries."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from app.errors import ConfigurationError

_MILLION = Decimal(1_000_000)


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


class Price(Protocol):
    """How a call's price is told; see `price_of`."""

    def __call__(self, tokens: Tokens, *, provider: str, model: str) -> Decimal | None: ...


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """US dollars for a million tokens of each kind."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal

    def of(self, tokens: Tokens) -> Decimal:
        return (
            self.input * tokens.uncached_input
            + self.cache_read * tokens.cache_read
            + self.cache_write * tokens.cache_write
            + self.output * tokens.output
        ) / _MILLION


@dataclass(frozen=True, slots=True)
class PriceTable:
    """The operator's prices, by `model` or `provider/model`; the published ones for all others."""

    models: Mapping[str, ModelPrice]

    def __call__(self, tokens: Tokens, *, provider: str, model: str) -> Decimal | None:
        """See `price_of`."""
        own = self.models.get(f"{provider}/{model}") or self.models.get(model)
        if own is not None:
            return own.of(tokens)
        return price_of(tokens, provider=provider, model=model)


_FIELDS = ("input", "output", "cache_read", "cache_write")


def read_prices(path: Path) -> PriceTable:
    """The table in a TOML file: `[models."name"]` with dollars for a million tokens of `input` and
    `output`, and of `cache_read` and `cache_write` where they differ from input.

    Raises ConfigurationError naming the file, the line or the key, and what belongs there.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise ConfigurationError(f"MERGEWARD_PRICES_FILE: {path} can't be read: {error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"MERGEWARD_PRICES_FILE: {path} is no TOML: {error}") from None
    models = found.pop("models", None)
    if not isinstance(models, dict) or not models or found:
        raise ConfigurationError(
            f'MERGEWARD_PRICES_FILE: {path} has to hold tables [models."name"] and nothing else.'
        )
    return PriceTable({name: _price(path, name, entry) for name, entry in models.items()})


def _price(path: Path, name: str, entry: Any) -> ModelPrice:
    where = f"MERGEWARD_PRICES_FILE: {path}, models.{name}"
    if not isinstance(entry, dict):
        raise ConfigurationError(f"{where} has to be a table with `input` and `output`.")
    unknown = sorted(set(entry) - set(_FIELDS))
    if unknown:
        raise ConfigurationError(f"{where}.{unknown[0]} is unknown; it has {', '.join(_FIELDS)}.")
    for field in ("input", "output"):
        if field not in entry:
            raise ConfigurationError(f"{where}.{field} is missing: dollars for a million tokens.")
    values = {}
    for field in _FIELDS:
        value = entry.get(field, entry["input"])
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or value < 0:
            raise ConfigurationError(
                f"{where}.{field} has to be a number of dollars, not {value!r}."
            )
        values[field] = Decimal(value)
    return ModelPrice(**values)
