"""The text of `opencode.json` for a run, and the environment that its references need. Pure.

No secret is in it: keys and headers are `{env:NAME}`. Nothing a stranger wrote is in it either,
since OpenCode expands `{env:…}` and `{file:…}` anywhere in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import SecretStr

from app.agents.port import AgentLimits, ModelRef
from app.agents.runtimes.direct.providers import ProviderSettings, WireFormat
from app.domain.runs import AgentName, Tier
from app.errors import PluginError
from app.plugins.configuration import RunConfiguration
from app.plugins.contributions import McpServer

SCHEMA = "https://opencode.ai/config.json"
"""A file without it is rewritten on disk by OpenCode."""

PROMPTS = "./prompts"
"""Where the runtime puts the rendered system prompts, beside the file."""

_BUILT_IN = ("build", "plan", "general", "explore")
_NPM = {WireFormat.ANTHROPIC: "@ai-sdk/anthropic", WireFormat.OPENAI: "@ai-sdk/openai-compatible"}
_PERMISSION = {"read_file": "read", "read_patch": "read", "list": "read"}
_SILENCE_MS = 90_000
"""Milliseconds without a sign of the provider; OpenCode's own 300 s is too long six times over."""
_UNSET = re.compile(r"[^A-Z0-9]+")


def opencode_json(configuration: RunConfiguration, agents: Iterable[AgentName], tier: Tier) -> str:
    """The configuration of one OpenCode process that runs `agents` (the first by default).

    `agents` are the run's coordinator or its reviewers. Raises PluginError for an agent whose
    models nobody can reach, and for one that has the name of an agent of OpenCode's own.
    """
    chosen = tuple(agents)
    models = {agent: _model_of(configuration, agent, tier) for agent in chosen}
    first = str(models[chosen[0]])
    document: dict[str, Any] = {
        "$schema": SCHEMA,
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,
        "lsp": False,
        "formatter": False,
        "enabled_providers": sorted({model.provider for model in models.values()}),
        "model": first,
        "small_model": first,
        "default_agent": _agent_id(chosen[0]),
        "compaction": {"auto": False},
        "tool_output": {"max_lines": 100_000, "max_bytes": 2_000_000},
        "experimental": {"continue_loop_on_deny": True},
        "permission": {"*": "deny"},
        "provider": _providers(configuration, chosen, tier),
        "agent": {
            **{name: {"disable": True} for name in _BUILT_IN},
            **{_agent_id(agent): _agent(configuration, agent, models[agent]) for agent in chosen},
        },
    }
    if servers := [s for s in configuration.mcp_servers if s.agents & set(chosen)]:
        document["mcp"] = {server.name: _mcp(server) for server in servers}
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def opencode_environment(configuration: RunConfiguration) -> Mapping[str, SecretStr]:
    """The variables that the file refers to, and those that plugins set. For the child only.

    Raises PluginError when two values would be under one name: one of them would go to the other's
    address.
    """
    variables: dict[str, SecretStr] = {}
    for name, value in _variables(configuration):
        if variables.setdefault(name, value) != value:
            raise PluginError(
                f"Two values of the configuration would be in the variable {name}: give one of the "
                "providers, servers, headers or variables another name."
            )
    return variables


def _variables(configuration: RunConfiguration) -> Iterator[tuple[str, SecretStr]]:
    yield from configuration.environment.items()
    for provider in configuration.providers:
        if provider.api_key:
            yield _variable("KEY", provider.name), SecretStr(provider.api_key)
        for name, value in _headers(configuration, provider).items():
            yield _variable("HEADER", provider.name, name), SecretStr(value)
    for server in configuration.mcp_servers:
        for name, secret in server.headers.items():
            yield _variable("MCP", server.name, name), secret


def _agent_id(agent: AgentName) -> str:
    """Ours are never taken for OpenCode's own of the same name (`general`, `plan`)."""
    return f"review_{agent}"


def _model_of(configuration: RunConfiguration, agent: AgentName, tier: Tier) -> ModelRef:
    return _models_of(configuration, agent, tier)[0]


def _models_of(
    configuration: RunConfiguration, agent: AgentName, tier: Tier
) -> tuple[ModelRef, ...]:
    chain = configuration.routing.chain_for(agent, tier)
    if all(chain.provider != provider.name for provider in configuration.providers):
        raise PluginError(
            f"The agent {agent} runs on the provider {chain.provider}, which no plugin registers."
        )
    return tuple(ModelRef(chain.provider, name) for name in chain.models)


def _providers(
    configuration: RunConfiguration, agents: tuple[AgentName, ...], tier: Tier
) -> dict[str, Any]:
    models = sorted(
        {model for agent in agents for model in _models_of(configuration, agent, tier)}, key=str
    )
    return {
        provider.name: _provider(
            configuration, provider, [m.name for m in models if m.provider == provider.name]
        )
        for provider in configuration.providers
        if any(model.provider == provider.name for model in models)
    }


def _provider(
    configuration: RunConfiguration, provider: ProviderSettings, models: list[str]
) -> dict[str, Any]:
    options: dict[str, Any] = {"headerTimeout": _SILENCE_MS, "chunkTimeout": _SILENCE_MS}
    if provider.base_url:
        # Its package for Anthropic wants the version in the address; ours adds it by itself.
        version = "/v1" if provider.wire is WireFormat.ANTHROPIC else ""
        options["baseURL"] = provider.base_url + version
    if provider.api_key and not _key_header(provider) & provider.without:
        options["apiKey"] = _reference("KEY", provider.name)
    if headers := _headers(configuration, provider):
        options["headers"] = {
            name: _reference("HEADER", provider.name, name) for name in sorted(headers)
        }
    limit = AgentLimits().max_output_tokens
    return {
        "npm": _NPM[provider.wire],
        "name": provider.name,
        "options": options,
        "models": {
            name: {
                "name": name,
                "limit": {
                    "context": configuration.routing.context_window(name),
                    "output": limit,
                },
                "tool_call": True,
            }
            for name in models
        },
    }


def _key_header(provider: ProviderSettings) -> frozenset[str]:
    """The header in which the wire format carries the key."""
    openai = provider.wire is WireFormat.OPENAI
    return frozenset({"authorization" if openai else "x-api-key"})


def _headers(configuration: RunConfiguration, provider: ProviderSettings) -> dict[str, str]:
    sent = {**provider.headers, **configuration.headers.get(provider.name, {})}
    return {name: value for name, value in sent.items() if name.lower() not in provider.without}


def _agent(configuration: RunConfiguration, agent: AgentName, model: ModelRef) -> dict[str, Any]:
    permission: dict[str, Any] = {"*": "deny"}
    for tool in sorted(configuration.allowed(agent)):
        permission[_PERMISSION.get(tool, tool)] = "allow"
    for server in configuration.mcp_servers:
        if agent in server.agents:
            permission[f"{server.name}_*"] = "allow"
    return {
        "mode": "primary",
        "model": str(model),
        "prompt": f"{{file:{PROMPTS}/{agent}.md}}",
        "permission": permission,
    }


def _mcp(server: McpServer) -> dict[str, Any]:
    common = {"enabled": True, "timeout": round(server.timeout_s * 1000)}
    if server.url is None:
        return {"type": "local", "command": list(server.command), **common}
    headers = {name: _reference("MCP", server.name, name) for name in sorted(server.headers)}
    return {"type": "remote", "url": server.url, "headers": headers, "oauth": False, **common}


def _variable(*parts: str) -> str:
    return "MERGEWARD_" + "_".join(_UNSET.sub("_", part.upper()) for part in parts)


def _reference(*parts: str) -> str:
    return f"{{env:{_variable(*parts)}}}"
