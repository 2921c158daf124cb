"""Which plugins a process has: the built-in ones, then those that are installed beside it."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, entry_points

from app.errors import PluginError
from app.logs import redact
from app.plugins.port import ReviewPlugin

GROUP = "mergeward.plugins"
"""The entry point group. Each entry names a class derived from `ReviewPlugin` (or a function that
makes one), which is called without arguments."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


def installed_entries() -> tuple[EntryPoint, ...]:
    """The entries of other packages, by name. Nothing of them is imported yet."""
    found = {(entry.name, entry.value): entry for entry in entry_points(group=GROUP)}
    return tuple(found[key] for key in sorted(found))


def load_plugin(entry: EntryPoint) -> ReviewPlugin:
    """The plugin of one entry. Raises PluginError naming the entry that cannot be used."""
    try:
        plugin = entry.load()()
    except Exception as error:
        raise PluginError(
            f"The plugin {entry.name} ({entry.value}) cannot be loaded: "
            f"{type(error).__name__}: {redact(str(error))}. Mend or uninstall its package, or "
            "leave it out with MERGEWARD_PLUGINS_OFF."
        ) from error
    if not isinstance(plugin, ReviewPlugin):
        raise PluginError(
            f"The entry {entry.name} ({entry.value}) of the group {GROUP} gives no ReviewPlugin."
        )
    name = getattr(plugin, "name", None)
    if name != entry.name or not _NAME.fullmatch(entry.name):
        raise PluginError(
            f"The plugin of the entry {entry.name} ({entry.value}) calls itself {name!r}: both "
            "need the same name of lower-case letters, digits and hyphens."
        )
    return plugin
