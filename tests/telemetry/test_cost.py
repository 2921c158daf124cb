"""What tokens cost."""

from __future__ import annotations

from decimal import Decimal

import pytest

from app.telemetry.cost import Tokens, price_of

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        pytest.param(Tokens(MILLION, 0, 0, 0), Decimal(5), id="input"),
        pytest.param(Tokens(0, MILLION, 0, 0), Decimal("0.5"), id="cache-read"),
        pytest.param(Tokens(0, 0, MILLION, 0), Decimal("6.25"), id="cache-write"),
        pytest.param(Tokens(0, 0, 0, MILLION), Decimal(25), id="output"),
        pytest.param(Tokens(0, 0, 0, 0), Decimal(0), id="nothing"),
    ],
)
def test_each_kind_of_token_has_its_price(tokens: Tokens, expected: Decimal) -> None:
    """Cached input is not billed as fresh input (published prices of Claude Opus 4.6)."""
    assert price_of(tokens, provider="anthropic", model="claude-opus-4-6") == expected


@pytest.mark.parametrize(
    ("provider", "model"), [("anthropic", "house-model"), ("nobody", "claude-opus-4-6")]
)
def test_an_unknown_price_is_unknown(provider: str, model: str) -> None:
    """None, never zero."""
    assert price_of(Tokens(1, 0, 0, 1), provider=provider, model=model) is None
