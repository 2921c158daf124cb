"""What the review story needs from outside, put together by the process that runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from app.agents.prompt_context import PromptContext
from app.domain.diff import FileChange
from app.domain.policy import SpendCaps
from app.forges.port import Forge
from app.git.mirror import Mirrors
from app.plugins.lifecycle import PluginHost
from app.plugins.runtimes import RuntimeSource
from app.review.context import write_run_files
from app.telemetry.cost import Price, price_of

OpenForge = Callable[[], AbstractAsyncContextManager[Forge]]
"""Acts as one of our Apps for the length of a job."""

WriteRunFiles = Callable[
    [Path, Sequence[FileChange], Mapping[str, str], PromptContext], Awaitable[None]
]
"""Writes what agents read of a run: the signature of `app.review.context.write_run_files`."""


@dataclass(frozen=True, slots=True)
class ReviewServices:
    """`our_logins` are the bot logins of both our Apps; `runs` is where runs keep their files. Who
    reviews, on which models, comes from `plugins`, run by run."""

    open_forge: OpenForge
    mirrors: Mirrors
    plugins: PluginHost
    runtimes: RuntimeSource
    runs: Path
    our_logins: frozenset[str]
    write_files: WriteRunFiles = write_run_files
    price: Price = price_of
    installation_caps: SpendCaps = field(default_factory=SpendCaps)
