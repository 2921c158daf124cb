"""Who reviews changes of which tier, on which models, told what: as it is configured. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.agents.port import ModelRef
from app.agents.prompts import render_reviewer, render_system
from app.control.routing import Routing
from app.domain.policy import Policy
from app.domain.runs import AgentName, Tier
from app.plugins.configuration import RunConfiguration
from app.plugins.contributions import Agent
from app.review.brief import models_of
from app.review.budget import text_tokens
from app.review.concerns import OWN_FILES
from app.review.plan import REVIEWERS

SHOWN = (
    AgentName.COORDINATOR,
    *dict.fromkeys(agent for tier in Tier for agent in REVIEWERS[tier]),
    AgentName.FIXER,
)
"""Every agent that ships, in the order in which they are told of."""


@dataclass(frozen=True, slots=True)
class Member:
    """One agent. `models` are its chains, first choice first, by the tiers it takes part in; the
    fixer's is that of every fix. `prompt_tokens` is what its system prompt takes of a window, by
    the rule that budgets are made with (`app.review.budget`). `only_if` says what it needs to
    start, "" for nothing."""

    agent: AgentName
    models: tuple[tuple[Tier, tuple[ModelRef, ...]], ...]
    prompt: str
    prompt_tokens: int
    only_if: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "agent": self.agent.value,
            "models": {tier.value: [str(ref) for ref in chain] for tier, chain in self.models},
            "prompt": self.prompt,
            "prompt_tokens": self.prompt_tokens,
            "only_if": self.only_if,
        }


def roster(
    policy: Policy, routing: Routing, configuration: RunConfiguration | None = None
) -> tuple[Member, ...]:
    """All agents that neither the policy nor a plugin switches off: those that ship, then the
    reviewers of plugins. Without a `configuration` there are no plugins."""
    off = configuration.switched_off if configuration else frozenset()
    others = configuration.agents.values() if configuration else ()
    has_codex = configuration is not None and bool(configuration.codex.rules)
    shipped = (_shipped(agent, policy, routing, has_codex=has_codex) for agent in SHOWN)
    brought = (_brought(agent, policy, routing) for agent in others)
    return tuple(
        member
        for member in (*shipped, *brought)
        if member.agent not in off and policy.reviewers.allows(member.agent)
    )


def _shipped(agent: AgentName, policy: Policy, routing: Routing, *, has_codex: bool) -> Member:
    system = render_system(agent)
    return Member(
        agent=agent,
        models=tuple((tier, models_of(agent, tier, policy, routing)) for tier in _tiers(agent)),
        prompt=system.version,
        prompt_tokens=text_tokens(system.text),
        only_if="" if agent == AgentName.COMPLIANCE and has_codex else _condition(agent),
    )


def _brought(agent: Agent, policy: Policy, routing: Routing) -> Member:
    system = render_reviewer(agent.name, agent.prompt)
    tiers = (tier for tier in Tier if tier in agent.when.tiers)
    return Member(
        agent=agent.name,
        models=tuple((tier, models_of(agent.name, tier, policy, routing)) for tier in tiers),
        prompt=system.version,
        prompt_tokens=text_tokens(system.text),
        only_if=f"the change touches {', '.join(agent.when.paths)}" if agent.when.paths else "",
    )


def _tiers(agent: AgentName) -> tuple[Tier, ...]:
    if agent in (AgentName.COORDINATOR, AgentName.FIXER):
        return tuple(Tier)
    return tuple(tier for tier in Tier if agent in REVIEWERS[tier])


def _condition(agent: AgentName) -> str:
    if agent == AgentName.COMPLIANCE:
        return "there is a codex"
    return "the change touches files of its own" if agent in OWN_FILES else ""
