"""From what the plugins gave to the run's configuration. Pure; names whoever contradicts whom."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from app.agents.prompt_context import AddedContext, PromptContext
from app.control import routing as table
from app.control.routing import Chain, Routing
from app.domain.runs import SHIPPED_AGENTS, AgentName
from app.errors import NoModelConfigured, PluginError
from app.plugins.codex import Codex
from app.plugins.configuration import RunConfiguration
from app.plugins.contributions import (
    READING,
    Agent,
    Contributed,
    Contribution,
    Description,
    Header,
    McpServer,
    ModelTier,
    Observer,
    Pin,
    PromptSection,
    Provider,
    Replacement,
    Restriction,
    Route,
    Rules,
    ShippedRouting,
    SwitchOff,
    Variable,
    Window,
)

NO_MODEL = (
    "No model can be reached: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or "
    "MERGEWARD_MODEL_BASE_URL for a compatible server, or MERGEWARD_GATEWAY_URL for a gateway."
)

_CODEX_READERS = frozenset({AgentName.COMPLIANCE, AgentName.COORDINATOR})

_T = TypeVar("_T")


def assemble(given: Sequence[Contributed]) -> RunConfiguration:
    """Merge what was given, in the plugins' order.

    Raises PluginError when two plugins give the same key, or when one names something that nobody
    gives; NoModelConfigured when no provider is left.
    """
    pool = _Pool(tuple(given))
    pool.refuse_conflicts()
    pool.refuse_unknown_agents()
    providers = tuple(item.settings for _, item in pool.of(Provider))
    if not providers:
        raise NoModelConfigured(NO_MODEL)
    routing = _routing(pool)
    _refuse_unknown_providers(pool, routing)
    return RunConfiguration(
        routing=routing,
        providers=providers,
        context=_context(pool),
        agents=MappingProxyType({item.name: item for _, item in pool.of(Agent)}),
        switched_off=frozenset(item.agent for _, item in pool.of(SwitchOff)),
        permissions=MappingProxyType(_permissions(pool)),
        headers=MappingProxyType(_headers(pool)),
        environment=MappingProxyType({item.name: item.value for _, item in pool.of(Variable)}),
        mcp_servers=tuple(item for _, item in pool.of(McpServer)),
        codex=_codex(pool),
        observers=tuple(item.session for _, item in pool.of(Observer)),
    )


@dataclass(frozen=True, slots=True)
class _Pool:
    """All contributions with their plugins' names."""

    given: tuple[Contributed, ...]

    def of(self, kind: type[_T]) -> Iterator[tuple[str, _T]]:
        """Those of one kind, in order, each with its plugin."""
        for one in self.given:
            for item in one.items:
                if isinstance(item, kind):
                    yield one.plugin, item

    def refuse_conflicts(self) -> None:
        owners: dict[str, str] = {}
        for one in self.given:
            for item in one.items:
                if item.key is None:
                    continue
                owner = owners.setdefault(item.key, one.plugin)
                if owner != one.plugin:
                    raise PluginError(
                        f"The plugins {owner} and {one.plugin} both give {item.key}. Leave one of "
                        "them out (MERGEWARD_PLUGINS_OFF), or let one use another name."
                    )

    def refuse_unknown_agents(self) -> None:
        known = {*SHIPPED_AGENTS, *(item.name for _, item in self.of(Agent))}
        for one in self.given:
            for agent in sorted({name for item in one.items for name in _named(item)} - known):
                raise PluginError(
                    f"The plugin {one.plugin} names the agent {agent}, which nobody registers; "
                    f"there are: {', '.join(sorted(known))}."
                )


def _named(item: Contribution) -> Collection[AgentName]:
    """The agents that a contribution is about."""
    match item:
        case Pin(if_known=True) | SwitchOff(if_known=True):
            return ()
        case Route() | Pin() | SwitchOff() | Restriction():
            return (item.agent,)
        case McpServer():
            return item.agents
        case PromptSection(added):
            return added.agents or ()
        case _:
            return ()


def _routing(pool: _Pool) -> Routing:
    providers = {item.settings.name for _, item in pool.of(Provider)}
    shipped = next((item.routing for _, item in pool.of(ShippedRouting)), None)
    if shipped is None:
        raise NoModelConfigured(NO_MODEL)
    chains = {**shipped.chains, **{item.name: item.chain for _, item in pool.of(ModelTier)}}
    routes = {item.name: (plugin, item.chain) for plugin, item in pool.of(Agent)}
    routes |= {item.agent: (plugin, item.chain) for plugin, item in pool.of(Route)}
    for agent, (plugin, name) in routes.items():
        if name not in chains and shipped.override is None:
            raise PluginError(
                f"The plugin {plugin} puts the agent {agent} on the chain {name}, which nobody "
                f"gives; there are: {', '.join(sorted(chains))}."
            )
    windows = {
        item.model: table.Window(item.tokens, shipped.windows["default"].checked)
        for _, item in pool.of(Window)
    }
    pinned = {
        item.agent: Chain(item.provider or shipped.provider, item.models)
        for _, item in pool.of(Pin)
        if not item.if_known or (item.provider or shipped.provider) in providers
    }
    return replace(
        shipped,
        chains=MappingProxyType(chains),
        agents=MappingProxyType(
            {**shipped.agents, **{agent: chain for agent, (_, chain) in routes.items()}}
        ),
        windows=MappingProxyType({**shipped.windows, **windows}),
        pinned=MappingProxyType({**shipped.pinned, **pinned}),
    )


def _refuse_unknown_providers(pool: _Pool, routing: Routing) -> None:
    """What plugins name must exist. The shipped table's own provider is checked when it is used."""
    known = sorted(item.settings.name for _, item in pool.of(Provider))
    wanted = [
        *((plugin, item.chain.provider) for plugin, item in pool.of(ModelTier)),
        *(
            (plugin, item.provider or routing.provider)
            for plugin, item in pool.of(Pin)
            if not item.if_known
        ),
        *((plugin, item.provider) for plugin, item in pool.of(Header)),
    ]
    for plugin, provider in wanted:
        if provider not in known:
            raise PluginError(
                f"The plugin {plugin} names the provider {provider}, which nobody registers; there "
                f"are: {', '.join(known)}."
            )


def _context(pool: _Pool) -> PromptContext:
    described = next((item.context for _, item in pool.of(Description)), None)
    if described is None:
        raise PluginError(
            "No plugin describes the change: a run needs one of the built-in plugins github and "
            "local, or one that takes their place."
        )
    fields = {item.field: item.value for _, item in pool.of(Replacement)}
    sections = tuple(item.added for _, item in pool.of(PromptSection))
    if rules := _codex(pool).text:
        sections += (AddedContext("compliance", "Codex", rules, _CODEX_READERS),)
    return replace(described, **fields, added=described.added + sections)  # type: ignore[arg-type]  # names are checked where they are given


def _codex(pool: _Pool) -> Codex:
    return next((item.codex for _, item in pool.of(Rules)), Codex())


def _permissions(pool: _Pool) -> dict[AgentName, frozenset[str]]:
    """Restrictions only narrow: what one plugin forbids, no other gives back."""
    allowed: dict[AgentName, frozenset[str]] = {}
    for _, item in pool.of(Restriction):
        allowed[item.agent] = allowed.get(item.agent, READING) & item.allowed
    return allowed


def _headers(pool: _Pool) -> dict[str, Mapping[str, str]]:
    banned = {item.settings.name: item.settings.without for _, item in pool.of(Provider)}
    headers: dict[str, dict[str, str]] = {}
    for plugin, item in pool.of(Header):
        if item.name.lower() in banned[item.provider]:
            raise PluginError(
                f"The plugin {plugin} gives the header {item.name} to the provider "
                f"{item.provider}, which never gets it."
            )
        headers.setdefault(item.provider, {})[item.name] = item.value.get_secret_value()
    return {provider: MappingProxyType(sent) for provider, sent in headers.items()}
