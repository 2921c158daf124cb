"""The plugins of a process, by its settings: the built-in ones in their order, then others'."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint

from app.agents.configured import providers_of, routing_of
from app.errors import ConfigurationError, PluginError
from app.plugins.assembler import NO_MODEL
from app.plugins.builtin.github import GitHubPlugin
from app.plugins.builtin.local import LocalPlugin
from app.plugins.builtin.models import ModelsPlugin
from app.plugins.discovery import installed_entries, load_plugin
from app.plugins.lifecycle import PluginHost
from app.plugins.port import ReviewPlugin
from app.settings import Settings


def plugins_of(settings: Settings, entries: Sequence[EntryPoint] | None = None) -> PluginHost:
    """The built-in plugins, then those of `entries` (None: what is installed beside us), without
    the ones that MERGEWARD_PLUGINS_OFF names: of those no code is loaded.

    Raises PluginError for a plugin that cannot be loaded and for a name that is none of them, and
    ConfigurationError when no model can be reached and no other plugin is there to change that.
    """
    off = frozenset(name.strip() for name in settings.plugins_off.split(",") if name.strip())
    found = installed_entries() if entries is None else tuple(entries)
    built_in = _built_in(settings)
    _refuse_unknown(off, [*(one.name for one in built_in), *(entry.name for entry in found)])
    wanted = [entry for entry in found if entry.name not in off]
    if not wanted and not providers_of(settings):
        raise ConfigurationError(NO_MODEL)
    ours = (plugin for plugin in built_in if plugin.name not in off)
    return PluginHost((*ours, *map(load_plugin, wanted)))


def _built_in(settings: Settings) -> tuple[ReviewPlugin, ...]:
    return (
        GitHubPlugin(),
        LocalPlugin(),
        ModelsPlugin(providers_of(settings), routing_of(settings)),
    )


def _refuse_unknown(off: frozenset[str], known: Sequence[str]) -> None:
    for name in sorted(off.difference(known)):
        raise PluginError(
            f"MERGEWARD_PLUGINS_OFF names {name}, but there is no such plugin; there are: "
            f"{', '.join(known)}."
        )
