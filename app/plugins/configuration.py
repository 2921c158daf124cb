"""The run's configuration: what came out of the plugins' contributions. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from app.agents.prompt_context import PromptContext
from app.agents.prompts import SystemPrompt, render_reviewer
from app.agents.runtimes.direct.providers import ProviderSettings
from app.control.routing import Routing
from app.domain.runs import AgentName
from app.plugins.codex import Codex
from app.plugins.contributions import READING, Agent, McpServer, SessionObserver


@dataclass(frozen=True, slots=True)
class RunConfiguration:
    """Who reviews, on which models of which providers, told what, and permitted what.

    `agents` are the plugins' own beside the shipped ones; `headers` go with each request to the
    provider of that name; `environment` is for agents that are programs. `permissions` holds the
    agents that may do less than read everything. `observers` are told of every session.
    """

    routing: Routing
    providers: tuple[ProviderSettings, ...]
    context: PromptContext
    agents: Mapping[AgentName, Agent] = field(default_factory=dict)
    switched_off: frozenset[AgentName] = frozenset()
    permissions: Mapping[AgentName, frozenset[str]] = field(default_factory=dict)
    headers: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    environment: Mapping[str, SecretStr] = field(default_factory=dict)
    mcp_servers: tuple[McpServer, ...] = ()
    codex: Codex = field(default_factory=Codex)
    observers: tuple[SessionObserver, ...] = ()

    def system_of(self, agent: AgentName) -> SystemPrompt | None:
        """The system prompt of a plugin's agent; None for a shipped one, which has its own."""
        own = self.agents.get(agent)
        return render_reviewer(agent, own.prompt) if own is not None else None

    def allowed(self, agent: AgentName) -> frozenset[str]:
        """The reading tools that the agent may use."""
        return self.permissions.get(agent, READING)
