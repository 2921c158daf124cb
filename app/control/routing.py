"""Which models an agent runs on.

The shipped table is `models.toml`. In the trivial and lite tiers the coordinator judges little
and runs on the standard chain; only a full review pays for the top one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib import resources

from app.domain.runs import AgentName, Tier
from app.errors import ConfigurationError

_DATED = re.compile(r"-20\d{6}\Z")


@dataclass(frozen=True, slots=True)
class Chain:
    """A failback chain of one provider: model names, first choice first."""

    provider: str
    models: tuple[str, ...]
    checked: date | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """How many tokens a model reads at once, and the day that was last looked up."""

    tokens: int
    checked: date


@cache
def _shipped() -> dict[str, object]:
    text = resources.files("app.control").joinpath("models.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def shipped_windows() -> Mapping[str, Window]:
    """The context windows of the shipped table, by model."""
    table = _shipped()["windows"]
    assert isinstance(table, dict)
    return {name: Window(entry["tokens"], entry["checked"]) for name, entry in table.items()}


@dataclass(frozen=True, slots=True)
class Routing:
    """An answer to "which chain for this agent?", for one provider.

    `override` names one model that replaces every chain (the operator's `MERGEWARD_MODEL`);
    `pinned` are chains that agents were given at run time, before the policy and the table.
    `windows` holds the context window of each known model, and `default` for all others.
    """

    provider: str
    chains: Mapping[str, Chain]
    agents: Mapping[AgentName, str]
    override: str | None = None
    windows: Mapping[str, Window] = field(default_factory=shipped_windows)
    pinned: Mapping[AgentName, Chain] = field(default_factory=dict)

    def context_window(self, model: str) -> int:
        """Tokens that the model reads at once, also by a dated name (`…-20250929`); for one that
        nobody listed, the default."""
        known = self.windows.get(_DATED.sub("", model), self.windows["default"])
        return known.tokens

    def chain_for(self, agent: AgentName, tier: Tier) -> Chain:
        """The chain `agent` runs on in a review of `tier`."""
        if agent in self.pinned:
            return self.pinned[agent]
        if self.override is not None:
            return Chain(self.provider, (self.override,))
        name = self.agents.get(agent, "standard")
        if agent == AgentName.COORDINATOR and tier is not Tier.FULL:
            name = "standard"
        return self.chains[name]


def shipped_routing(provider: str, override: str | None = None) -> Routing:
    """The shipped routing for one provider (`anthropic` or `openai`).

    Raises ConfigurationError when nothing is shipped for that provider and no model is named.
    """
    table = _shipped()
    chains = _chains(table["chains"], provider)
    if override is None and not chains:
        raise ConfigurationError(
            f"No models are shipped for the provider {provider!r}. Name one in MERGEWARD_MODEL."
        )
    agents = table["agents"]
    assert isinstance(agents, dict)
    return Routing(
        provider=provider,
        chains=chains,
        agents={AgentName(name): str(tier) for name, tier in agents.items()},
        override=override,
    )


def _chains(table: object, provider: str) -> dict[str, Chain]:
    assert isinstance(table, dict)
    return {
        name: Chain(provider, tuple(entry[provider]["models"]), entry[provider]["checked"])
        for name, entry in table.items()
        if provider in entry
    }
