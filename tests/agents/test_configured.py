"""Which providers the settings give (app/agents/configured.py)."""

from __future__ import annotations

from typing import Any

import pytest

from app.agents.configured import direct_runtimes, providers_of, routing_of
from app.agents.port import ModelRef
from app.agents.runtimes.direct import ProviderSettings, WireFormat
from app.settings import load_settings

NOTHING = {"anthropic_api_key": None, "openai_api_key": None, "model_base_url": None}
GATEWAY = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        pytest.param({"anthropic_api_key": "a" * 8}, ("a" * 8,), id="anthropic"),
        pytest.param({"openai_api_key": "o" * 8}, ("o" * 8,), id="openai"),
        pytest.param(
            {"anthropic_api_key": "a" * 8, "openai_api_key": "o" * 8},
            ("a" * 8, "o" * 8),
            id="both",
        ),
        pytest.param({"model_base_url": GATEWAY}, ("not-needed",), id="gateway-without-a-key"),
        pytest.param(
            {"model_base_url": GATEWAY, "model_api_key": "g" * 8, "anthropic_api_key": "a" * 8},
            ("g" * 8,),
            id="the-gateway-never-gets-the-provider's-key",
        ),
    ],
)
def test_providers_and_their_keys(given: dict[str, Any], keys: tuple[str, ...]) -> None:
    """Each address gets the key that was set for it, and no other."""
    providers = providers_of(load_settings(**(NOTHING | given)))
    connections = direct_runtimes()(providers)._connections
    assert connections.secrets() == keys
    assert connections.knows(ModelRef("anthropic", "m")) == ("o" * 8 not in keys[:1])


@pytest.mark.parametrize(
    ("given", "expected", "chain"),
    [
        pytest.param(
            {"model_base_url": GATEWAY, "model_wire": "openai", "model_api_key": "g" * 8},
            [("openai", "g" * 8, GATEWAY)],
            "openai",
            id="a-server-of-openai's-format",
        ),
        pytest.param(
            {
                "model_base_url": GATEWAY,
                "model_wire": "openai",
                "openai_api_key": "o" * 8,
                "anthropic_api_key": "a" * 8,
            },
            [("anthropic", "a" * 8, None), ("openai", "not-needed", GATEWAY)],
            "openai",
            id="it-never-gets-openai's-key",
        ),
        pytest.param(
            {"model_base_url": GATEWAY}, [("anthropic", "not-needed", GATEWAY)], "anthropic",
            id="anthropic's-unless-told",
        ),
        pytest.param(
            {"openai_api_key": "o" * 8, "model_wire": "anthropic"},
            [("openai", "o" * 8, None)],
            "openai",
            id="the-format-is-of-the-address",
        ),
    ],
)  # fmt: skip
def test_the_address_speaks_one_format(
    given: dict[str, Any], expected: list[tuple[str, str, str | None]], chain: str
) -> None:
    """The other provider stays what it is, and agents run on the chains of what is at the
    address."""
    settings = load_settings(**(NOTHING | given))
    found = [(one.name, one.api_key, one.base_url) for one in providers_of(settings)]
    assert found == expected
    assert routing_of(settings).provider == chain


def test_without_a_key_and_an_address_there_is_no_provider() -> None:
    """Nothing is made up; whoever needs one says so."""
    assert providers_of(load_settings(**NOTHING)) == ()


def test_runtimes_of_a_process_share_their_breakers() -> None:
    """A model that is down is down for every run, whichever other providers the run has."""
    make = direct_runtimes()
    first, second = make(()), make((ProviderSettings("x", WireFormat.OPENAI, "k" * 8),))
    assert first._around is second._around
