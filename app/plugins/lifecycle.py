"""A run's three steps, for all plugins: bootstrap, configure, post-configure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field

from app.agents.prompt_context import AddedContext
from app.errors import MergewardError, PluginError
from app.logs import get_logger, redact
from app.plugins.assembler import assemble
from app.plugins.configuration import RunConfiguration
from app.plugins.context import BootstrapContext, ConfigureContext, RunContext
from app.plugins.contributions import Contributed
from app.plugins.facts import ReadFile, RunFacts, RunView
from app.plugins.port import ReviewPlugin

log = get_logger(__name__)

BOOTSTRAP_S = 5.0
"""Seconds that one plugin's bootstrap may take: a review must not wait for somebody's server."""

CLOSE_S = 3.0
"""Seconds that one plugin may take at the end of the process."""

POST_CONFIGURE_S = 120.0
"""Seconds that one plugin may look at a change: as long as a slow analyzer of a large one."""


@dataclass(frozen=True, slots=True)
class PluginHost:
    """The plugins of a process, in the order in which they configure. Raises PluginError when two
    have one name."""

    plugins: tuple[ReviewPlugin, ...]
    bootstrap_s: float = field(default=BOOTSTRAP_S, kw_only=True)
    post_configure_s: float = field(default=POST_CONFIGURE_S, kw_only=True)

    def __post_init__(self) -> None:
        names = [plugin.name for plugin in self.plugins]
        for name in names:
            if names.count(name) > 1:
                raise PluginError(f"Two plugins are called {name}. Leave one of them out.")

    async def configured(self, facts: RunFacts, read: ReadFile) -> RunConfiguration:
        """Bootstrap and configure, then assemble. `read` reads the base side of the change.

        Raises PluginError naming the plugin that failed, or the two that contradict each other;
        ConfigurationError when no model can be reached.
        """
        contexts = [BootstrapContext(plugin.name, facts, read) for plugin in self.plugins]
        prepared = await asyncio.gather(
            *(
                _survived(plugin, "bootstrap", plugin.bootstrap(context), self.bootstrap_s)
                for plugin, context in zip(self.plugins, contexts, strict=True)
            )
        )
        given = [
            _configure(plugin, ConfigureContext(plugin.name, facts, result))
            for plugin, result in zip(self.plugins, prepared, strict=True)
        ]
        return assemble(given)

    async def evidence(self, view: RunView) -> tuple[AddedContext, ...]:
        """What the plugins add for the reviewers of this run, in the plugins' order."""
        contexts = [RunContext(plugin.name, view) for plugin in self.plugins]
        await asyncio.gather(
            *(
                _survived(
                    plugin, "post_configure", plugin.post_configure(context), self.post_configure_s
                )
                for plugin, context in zip(self.plugins, contexts, strict=True)
            )
        )
        return tuple(added for context in contexts for added in context.given())

    async def aclose(self) -> None:
        """Let each plugin end what it began, all at once. No run may be going on."""
        await asyncio.gather(
            *(_survived(plugin, "close", plugin.close(), CLOSE_S) for plugin in self.plugins)
        )


async def _survived(
    plugin: ReviewPlugin, step: str, work: Awaitable[object], most_s: float
) -> object:
    """What `work` gives; None, and a line in the log, when it fails or takes too long."""
    try:
        async with asyncio.timeout(most_s):
            return await work
    except TimeoutError:
        log.warning("a plugin took too long", plugin=plugin.name, step=step, seconds=most_s)
    except Exception as error:
        log.warning("a plugin failed", plugin=plugin.name, step=step, error=_words(error))
    return None


def _configure(plugin: ReviewPlugin, context: ConfigureContext) -> Contributed:
    try:
        plugin.configure(context)
    except Exception as error:
        raise PluginError(
            f"The plugin {plugin.name} failed to configure the run: {_words(error)}. Mend its "
            "configuration, or leave it out with MERGEWARD_PLUGINS_OFF."
        ) from error
    return context.close()


def _words(error: Exception) -> str:
    said = redact(str(error)).rstrip(".")
    return said if isinstance(error, MergewardError) else f"{type(error).__name__}: {said}"
