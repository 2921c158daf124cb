"""`compliance`: the organisation's codex, from a file or an address of the operator's and from the
repository's own file, for the compliance reviewer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from app.plugins.codex import MOST_BYTES, Codex, merged, parse_codex
from app.plugins.context import BootstrapContext, ConfigureContext
from app.plugins.fetch import Fetcher
from app.plugins.port import ReviewPlugin
from app.plugins.remembered import Remembered

REPOSITORY_FILE = ".github/mergeward-codex.yml"
"""Read as it was before the change. It adds rules and cannot change one of the organisation's."""


class CompliancePlugin(ReviewPlugin):
    """Gives each run the codex. While the organisation's cannot be read its last good version
    holds; a repository's file that cannot be read is left out, and the log says so."""

    name = "compliance"

    def __init__(self, source: str | None, fetcher: Fetcher) -> None:
        """`source` is an https:// address or the path of a file; None: repositories' files only."""
        self._source = source
        self._fetcher = fetcher
        self._codex = Remembered("the codex", self._load)

    async def bootstrap(self, context: BootstrapContext) -> object:
        ours = await self._codex.get() if self._source is not None else None
        document = await context.read(REPOSITORY_FILE)
        if document is None:
            return ours
        try:
            return merged(ours or Codex(), parse_codex(document))
        except ValueError as error:
            context.warn(f"{REPOSITORY_FILE} is left out", str(error))
            return ours

    def configure(self, context: ConfigureContext) -> None:
        if isinstance(context.prepared, Codex) and context.prepared.rules:
            context.codex(context.prepared)

    async def _load(self) -> Codex:
        assert self._source is not None
        if self._source.startswith(("https://", "http://")):
            return parse_codex(await self._fetcher.fetch(self._source))
        return parse_codex(await asyncio.to_thread(_read, Path(self._source)))


def _read(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES + 1)
