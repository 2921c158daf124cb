"""Plugins made from what they do, and a run to do it in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from pydantic import SecretStr

from app.agents.runtimes.direct.providers import WireFormat
from app.control.routing import shipped_routing
from app.domain.runs import AgentName, Tier
from app.plugins.builtin.describing import described
from app.plugins.context import BootstrapContext, ConfigureContext, RunContext
from app.plugins.facts import RunFacts, RunKind, RunView, no_file
from app.plugins.port import ReviewPlugin

FACTS = RunFacts(
    kind=RunKind.PULL_REQUEST,
    repository="acme/shop",
    number=7,
    title="Add note search",
    author="alice",
    base_sha="a" * 40,
    head_sha="b" * 40,
)

PROMPT = """---
id: acme_sql
version: 3
inputs: []
---
## What to flag

- a query without a limit; see it with `{{read_file}}`
"""


class Made(ReviewPlugin):
    """Does what its functions do."""

    def __init__(
        self,
        name: str,
        configure: Callable[[ConfigureContext], None] | None = None,
        bootstrap: Callable[[BootstrapContext], Awaitable[object]] | None = None,
        post_configure: Callable[[RunContext], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name  # type: ignore[misc]  # a class attribute of real plugins
        self._configure = configure
        self._bootstrap = bootstrap
        self._post_configure = post_configure

    async def bootstrap(self, context: BootstrapContext) -> object:
        return await self._bootstrap(context) if self._bootstrap else None

    def configure(self, context: ConfigureContext) -> None:
        if self._configure:
            self._configure(context)

    async def post_configure(self, context: RunContext) -> None:
        if self._post_configure:
            await self._post_configure(context)


def base(key: str = "k" * 20, provider: str = "anthropic") -> Made:
    """What every run needs: a provider, the shipped table, and a description of the change."""

    def configure(context: ConfigureContext) -> None:
        context.provider(provider, WireFormat.ANTHROPIC, key=SecretStr(key))
        context.shipped_routing(shipped_routing("anthropic"))
        context.describe_change(described(context.facts))

    return Made("base", configure)


def view(facts: RunFacts = FACTS) -> RunView:
    return RunView(facts, Tier.FULL, (AgentName.SECURITY,), (), no_file)


def prompt_file(folder: Path, text: str = PROMPT) -> Path:
    file = folder / "acme_sql.md"
    file.write_text(text, encoding="utf-8")
    return file
