"""Which model an agent gets, from shipped data."""

from __future__ import annotations

import pytest

from app.control.routing import shipped_routing, shipped_windows
from app.domain.runs import SHIPPED_AGENTS, AgentName, Tier
from app.errors import ConfigurationError


@pytest.mark.parametrize(
    ("agent", "tier", "first"),
    [
        pytest.param(AgentName.COORDINATOR, Tier.FULL, "claude-opus-4-7", id="full-judge-on-top"),
        pytest.param(
            AgentName.COORDINATOR, Tier.LITE, "claude-sonnet-4-6", id="lite-judge-on-standard"
        ),
        pytest.param(AgentName.SECURITY, Tier.FULL, "claude-sonnet-4-6", id="reviewer"),
        pytest.param(AgentName.FIXER, Tier.FULL, "claude-sonnet-4-6", id="fixer"),
    ],
)
def test_shipped_chain(agent: AgentName, tier: Tier, first: str) -> None:
    """Only the judge of a full review pays for the top chain."""
    assert shipped_routing("anthropic").chain_for(agent, tier).models[0] == first


def test_every_agent_has_a_chain() -> None:
    """No agent is left without a model in any tier."""
    routing = shipped_routing("anthropic")
    assert all(routing.chain_for(agent, tier).models for agent in SHIPPED_AGENTS for tier in Tier)


def test_a_chain_stays_in_its_family() -> None:
    """Failback never leaves the model's family."""
    for chain in shipped_routing("anthropic").chains.values():
        assert len({name.split("-")[1] for name in chain.models}) == 1


def test_override_replaces_every_chain() -> None:
    """One model named by the operator is used for everything."""
    routing = shipped_routing("anthropic", override="local-model")
    assert routing.chain_for(AgentName.COORDINATOR, Tier.FULL).models == ("local-model",)


def test_unknown_provider_without_a_model_names_the_setting() -> None:
    """An unusable provider says which variable mends it."""
    with pytest.raises(ConfigurationError, match="MERGEWARD_MODEL"):
        shipped_routing("acme")


def test_every_shipped_model_has_a_window_with_its_date() -> None:
    """A change is split by it: a model without one would be taken for a small one."""
    for provider in ("anthropic", "openai"):
        routing = shipped_routing(provider)
        for chain in routing.chains.values():
            assert {*chain.models} <= routing.windows.keys()
    assert all(window.tokens >= 100_000 for window in shipped_windows().values())


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        pytest.param("claude-sonnet-4-5", 200_000, id="listed"),
        pytest.param("claude-sonnet-4-5-20250929", 200_000, id="dated"),
        pytest.param("gpt-5.4-mini", 128_000, id="another-of-the-family"),
        pytest.param("somebody/else", 128_000, id="unknown"),
    ],
)
def test_a_window_is_known_or_assumed_small(model: str, tokens: int) -> None:
    """A longer name is another model, but for its date."""
    assert shipped_routing("anthropic").context_window(model) == tokens
