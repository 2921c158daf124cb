"""What tokens cost by the operator's own table (app/telemetry/cost.py)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from app.errors import ConfigurationError
from app.telemetry.cost import Tokens, price_of, read_prices

MILLION = Tokens(1_000_000, 1_000_000, 1_000_000, 1_000_000)
OWN = """
[models."house-model"]
input = 2.0
output = 10
cache_read = 0.25
[models."anthropic/claude-sonnet-4-6"]
input = 1.5
output = 7.5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(OWN)
    return path


@pytest.mark.parametrize(
    ("provider", "model", "dollars"),
    [
        pytest.param("x", "house-model", Decimal("14.25"), id="by-name-anywhere"),
        pytest.param("anthropic", "claude-sonnet-4-6", Decimal("12.0"), id="by-provider-and-name"),
        pytest.param("x", "nobody-knows-this", None, id="unknown-is-not-zero"),
    ],
)
def test_own_prices(file: Path, provider: str, model: str, dollars: Decimal | None) -> None:
    """Dollars for a million tokens of each kind; a kind that is not named costs as input does."""
    assert read_prices(file)(MILLION, provider=provider, model=model) == dollars


def test_other_models_have_the_published_price(file: Path) -> None:
    """A table of one model does not make the others free."""
    published = price_of(MILLION, provider="anthropic", model="claude-opus-4-7")
    own = read_prices(file)(MILLION, provider="anthropic", model="claude-opus-4-7")
    assert own == published
    assert published


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("[models", "is no TOML", id="no-toml"),
        pytest.param("", 'tables [models."name"]', id="empty"),
        pytest.param("price = 3\n[models.a]\ninput=1\noutput=1", "nothing else", id="more"),
        pytest.param("[models.a]\ninput = 1", "models.a.output is missing", id="no-output"),
        pytest.param("[models.a]\ninput=1\noutput=1\nin=2", "models.a.in is unknown", id="typo"),
        pytest.param('[models.a]\ninput="1"\noutput=1', "models.a.input has to be", id="text"),
        pytest.param("[models.a]\ninput=1\noutput=-1", "models.a.output has to be", id="negative"),
        pytest.param("[models.a]\ninput=true\noutput=1", "models.a.input has to be", id="bool"),
        pytest.param("[models]\na = 3", "models.a has to be a table", id="no-table"),
    ],
)
def test_a_bad_table_is_named(tmp_path: Path, text: str, words: str) -> None:
    """The setting, the file, the key, and what belongs there."""
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_prices(path)
    assert "MERGEWARD_PRICES_FILE" in str(caught.value)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    """Said with the setting's name."""
    with pytest.raises(ConfigurationError, match=r"MERGEWARD_PRICES_FILE.*can't be read"):
        read_prices(tmp_path / "none.toml")
