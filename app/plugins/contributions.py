"""What a plugin can give to a run, as values. Two plugins that give the same key contradict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic import SecretStr

from app.agents.port import AgentEvent
from app.agents.prompt_context import AddedContext, PromptContext
from app.agents.prompts import PromptFile
from app.agents.runtimes.direct.providers import ProviderSettings
from app.control.routing import Chain, Routing
from app.domain.runs import AgentName, Tier
from app.plugins.codex import Codex

SessionObserver: TypeAlias = Callable[[], Callable[[AgentEvent], None]]

READING = frozenset({"read_patch", "read_file", "grep", "glob", "list"})
"""All that an agent of a review may ever be permitted: to read the change and its repository."""


@dataclass(frozen=True, slots=True)
class RunWhen:
    """When an agent takes part: in reviews of these tiers, and, where `paths` are given, only when
    a reviewed file is selected by one of the globs (as in `.gitignore`)."""

    tiers: frozenset[Tier] = frozenset({Tier.FULL})
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """A reviewer of a plugin: its prompt file, the chain of models it runs on, and when."""

    name: AgentName
    prompt: PromptFile
    chain: str
    when: RunWhen

    @property
    def key(self) -> str:
        return f"the agent {self.name}"


@dataclass(frozen=True, slots=True)
class Provider:
    settings: ProviderSettings

    @property
    def key(self) -> str:
        return f"the provider {self.settings.name}"


@dataclass(frozen=True, slots=True)
class ShippedRouting:
    """The table that all chains and routes of plugins are laid over."""

    routing: Routing

    @property
    def key(self) -> str:
        return "the table of models"


@dataclass(frozen=True, slots=True)
class ModelTier:
    """A failback chain under a name."""

    name: str
    chain: Chain

    @property
    def key(self) -> str:
        return f"the chain {self.name}"


@dataclass(frozen=True, slots=True)
class Route:
    """An agent on a named chain."""

    agent: AgentName
    chain: str

    @property
    def key(self) -> str:
        return f"the chain of the agent {self.agent}"


@dataclass(frozen=True, slots=True)
class Pin:
    """An agent on exactly these models: before the policy's wish and every table. `if_known`: it
    counts for nothing where nobody registers the agent or the provider."""

    agent: AgentName
    models: tuple[str, ...]
    provider: str | None = None
    if_known: bool = False

    @property
    def key(self) -> str:
        return f"the models of the agent {self.agent}"


@dataclass(frozen=True, slots=True)
class Window:
    """How many tokens a model reads at once."""

    model: str
    tokens: int

    @property
    def key(self) -> str:
        return f"the context window of {self.model}"


@dataclass(frozen=True, slots=True)
class SwitchOff:
    agent: AgentName
    if_known: bool = False
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the environment of agents that are programs."""

    name: str
    value: SecretStr

    @property
    def key(self) -> str:
        return f"the environment variable {self.name}"


@dataclass(frozen=True, slots=True)
class Header:
    """A header of each request of this run to one provider."""

    provider: str
    name: str
    value: SecretStr

    @property
    def key(self) -> str:
        return f"the header {self.name.lower()} of the provider {self.provider}"


@dataclass(frozen=True, slots=True)
class Description:
    """The change as agents are told of it."""

    context: PromptContext

    @property
    def key(self) -> str:
        return "the description of the change"


@dataclass(frozen=True, slots=True)
class Replacement:
    """One field of the description, such as `agents_md_template`."""

    field: str
    value: str

    @property
    def key(self) -> str:
        return f"the prompt's {self.field}"


@dataclass(frozen=True, slots=True)
class Rules:
    """The codex that the compliance reviewer judges by."""

    codex: Codex

    @property
    def key(self) -> str:
        return "the codex"


@dataclass(frozen=True, slots=True)
class Observer:
    """Makes, for each session, what is told of its events."""

    session: SessionObserver
    key: str | None = None


@dataclass(frozen=True, slots=True)
class PromptSection:
    added: AddedContext
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Restriction:
    """An agent may do no more than this. Several restrictions all hold: nothing widens them."""

    agent: AgentName
    allowed: frozenset[str]
    key: str | None = None


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server of tools, for `agents` only. `url`, or `command` for one started as a child."""

    name: str
    agents: frozenset[AgentName]
    url: str | None = None
    command: tuple[str, ...] = ()
    headers: Mapping[str, SecretStr] = field(default_factory=dict)
    timeout_s: float = 60.0

    @property
    def key(self) -> str:
        return f"the MCP server {self.name}"


Contribution: TypeAlias = (
    Agent
    | Provider
    | ShippedRouting
    | ModelTier
    | Route
    | Pin
    | Window
    | SwitchOff
    | Variable
    | Header
    | Description
    | Replacement
    | Rules
    | Observer
    | PromptSection
    | Restriction
    | McpServer
)


@dataclass(frozen=True, slots=True)
class Contributed:
    """Everything that one plugin gave to one run, in its order."""

    plugin: str
    items: tuple[Contribution, ...]
