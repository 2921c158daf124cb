"""The plugins of a process, by its settings: the built-in ones in their order, then others'."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from secrets import token_hex

from pydantic import SecretStr

from app.agents.configured import providers_of, routing_of
from app.control.routing import shipped_routing
from app.errors import NoModelConfigured, PluginError
from app.plugins.analyzers import AnalyzersPlugin
from app.plugins.assembler import NO_MODEL
from app.plugins.builtin.agents_md import AgentsMdPlugin, read_template
from app.plugins.builtin.compliance import CompliancePlugin
from app.plugins.builtin.gateway import (
    GatewayModels,
    GatewayOptions,
    GatewayPlugin,
    read_models,
)
from app.plugins.builtin.github import GitHubPlugin
from app.plugins.builtin.local import LocalPlugin
from app.plugins.builtin.models import ModelsPlugin
from app.plugins.builtin.reviewer_config import RemoteOptions, ReviewerConfigPlugin
from app.plugins.builtin.telemetry import TelemetryPlugin
from app.plugins.builtin.tracing import TracingPlugin
from app.plugins.discovery import installed_entries, load_plugin
from app.plugins.fetch import Fetcher
from app.plugins.lifecycle import PluginHost
from app.plugins.port import ReviewPlugin
from app.settings import Settings
from app.telemetry.tracker import Tracker


def plugins_of(settings: Settings, entries: Sequence[EntryPoint] | None = None) -> PluginHost:
    """The built-in plugins, then those of `entries` (None: what is installed beside us), without
    the ones that MERGEWARD_PLUGINS_OFF names: of those no code is loaded.

    Raises PluginError for a plugin that cannot be loaded and for a name that is none of them, and
    NoModelConfigured when no model can be reached and no other plugin is there to change that.
    """
    off = frozenset(words_of(settings.plugins_off))
    found = installed_entries() if entries is None else tuple(entries)
    built_in = _built_in(settings)
    _refuse_unknown(off, [*(one.name for one in built_in), *(entry.name for entry in found)])
    wanted = [entry for entry in found if entry.name not in off]
    if not wanted and not settings.gateway_url and not providers_of(settings):
        raise NoModelConfigured(NO_MODEL)
    ours = (plugin for plugin in built_in if plugin.name not in off)
    return PluginHost((*ours, *map(load_plugin, wanted)))


def _built_in(settings: Settings) -> tuple[ReviewPlugin, ...]:
    plugins: list[ReviewPlugin] = [GitHubPlugin(), LocalPlugin(), _models(settings)]
    fetcher = Fetcher(frozenset(words_of(settings.internal_hosts)))
    if settings.reviewer_config_url:
        remote = RemoteOptions(settings.reviewer_config_url, settings.reviewer_config_token)
        plugins.append(ReviewerConfigPlugin(remote, fetcher))
    plugins.append(AnalyzersPlugin())
    template = settings.agents_md_template
    plugins.append(CompliancePlugin(settings.codex, fetcher))
    plugins.append(AgentsMdPlugin(read_template(template) if template is not None else None))
    if settings.telemetry_url:
        token = settings.telemetry_token
        secret = token.get_secret_value() if token is not None else None
        plugins.append(TelemetryPlugin(Tracker(settings.telemetry_url, secret)))
    if settings.tracing:
        plugins.append(TracingPlugin())
    return tuple(plugins)


def _models(settings: Settings) -> ReviewPlugin:
    """Where models are reached: through the gateway alone, or at the providers themselves."""
    if settings.gateway_url is None:
        return ModelsPlugin(providers_of(settings), routing_of(settings))
    table = settings.gateway_models
    options = GatewayOptions(
        url=settings.gateway_url,
        token=settings.gateway_token,
        # Without a key that lasts, ids last as long as the process: none that can be guessed.
        id_key=settings.gateway_id_key or settings.gateway_token or SecretStr(token_hex()),
        strip=words_of(settings.gateway_strip),
        models=read_models(table) if table is not None else GatewayModels(),
    )
    return GatewayPlugin(options, shipped_routing("anthropic", override=settings.model))


def words_of(text: str) -> tuple[str, ...]:
    """The words of a setting that holds several, separated by commas."""
    return tuple(word.strip().lower() for word in text.split(",") if word.strip())


def _refuse_unknown(off: frozenset[str], known: Sequence[str]) -> None:
    for name in sorted(off.difference(known)):
        raise PluginError(
            f"MERGEWARD_PLUGINS_OFF names {name}, but there is no such plugin; there are: "
            f"{', '.join(known)}."
        )
