"""The plugin: copies of the changed files out, remarks on changed lines in."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from app.domain.diff import FileChange, FileStatus, LineKind
from app.domain.redaction import redact
from app.logs import get_logger
from app.plugins.analyzers.port import Analyzer, Remark, installed_analyzers
from app.plugins.analyzers.run import AnalyzerFailed, Caps, output_of, program_path
from app.plugins.analyzers.shipped import SHIPPED
from app.plugins.context import RunContext
from app.plugins.port import ReviewPlugin

log = get_logger(__name__)

MOST_FILES = 300
FILE_BYTES = 1024 * 1024
ALL_BYTES = 20 * 1024 * 1024
"""Beyond these, files go unread by analyzers: the reviewers read them in any case."""

MOST_REMARKS = 200
"""Of one analyzer; about 5,000 tokens."""

MESSAGE_CHARS = 300

_SUFFIX = re.compile(r"\.[a-z0-9]{1,8}")


@dataclass(frozen=True, slots=True)
class Copied:
    """A changed file under a name of ours, and the lines that the change adds."""

    name: str
    path: str
    added: frozenset[int]


class AnalyzersPlugin(ReviewPlugin):
    """Runs what is installed on what is reviewed, and hands the results to reviewers."""

    name = "analyzers"

    def __init__(
        self,
        analyzers: Sequence[Analyzer] | None = None,
        *,
        where: Callable[[str], str | None] = program_path,
        caps: Caps | None = None,
    ) -> None:
        """`analyzers` None: the shipped ones and those of other packages."""
        self._analyzers = (*SHIPPED, *installed_analyzers()) if analyzers is None else analyzers
        self._where = where
        self._caps = caps or Caps()

    async def post_configure(self, context: RunContext) -> None:
        programs = {one: found for one in self._analyzers if (found := self._where(one.program))}
        for one in self._analyzers:
            if one not in programs:
                _skipped(context, one, "not installed")
        if not programs or not context.changes:
            return
        with tempfile.TemporaryDirectory(prefix="mergeward-analyzers-") as name:
            folder = Path(name)
            copied = await copy_changed(context.changes, context.read, folder)
            runs = (self._run(context, one, path, folder, copied) for one, path in programs.items())
            await asyncio.gather(*runs)

    async def _run(
        self,
        context: RunContext,
        analyzer: Analyzer,
        program: str,
        folder: Path,
        copied: Sequence[Copied],
    ) -> None:
        mine = [one for one in copied if _reads(analyzer, one)]
        if not mine:
            return
        arguments = analyzer.arguments([one.name for one in mine])
        try:
            output = await output_of((program, *arguments), folder, analyzer.exit_codes, self._caps)
            remarks = tuple(analyzer.parse(output))
        except (AnalyzerFailed, OSError, ValueError, KeyError, TypeError) as error:
            _skipped(context, analyzer, f"{type(error).__name__}: {redact(str(error))[:300]}")
            return
        lines = evidence_lines(remarks, mine)
        log.info("analyzer_ran", analyzer=analyzer.name, files=len(mine), remarks=len(lines))
        agents = tuple(analyzer.agents)
        context.evidence(f"{analyzer.name}, on changed lines", _listed(lines), agents=agents)


async def copy_changed(
    changes: Iterable[FileChange],
    read: Callable[[str], Awaitable[bytes | None]],
    folder: Path,
) -> tuple[Copied, ...]:
    """Write the changed files into `folder`, by number: no name of the repository is used, so none
    can lead elsewhere, look like an option, or be a configuration."""
    copied: list[Copied] = []
    total = 0
    for change in changes:
        added = _added(change)
        if not added or len(copied) >= MOST_FILES:
            continue
        content = await read(change.path)
        if content is None or len(content) > FILE_BYTES or total + len(content) > ALL_BYTES:
            continue
        total += len(content)
        name = f"f{len(copied):04}{_suffix(change.path)}"
        await asyncio.to_thread((folder / name).write_bytes, content)
        copied.append(Copied(name, change.path, added))
    return tuple(copied)


def evidence_lines(remarks: Iterable[Remark], copied: Iterable[Copied]) -> list[str]:
    """What is told, one line a remark, in the order of files and lines: changed lines only."""
    files: Mapping[str, Copied] = {one.name: one for one in copied}
    kept = {
        (one.file, one.line, one.rule, one.message)
        for one in remarks
        if one.file in files and one.line in files[one.file].added
    }
    return [
        f"{_plain(files[file].path)}:{line}: {_plain(rule)}: "
        f"{_plain(redact(message))[:MESSAGE_CHARS]}"
        for file, line, rule, message in sorted(kept)
    ]


def _listed(lines: Sequence[str]) -> str:
    more = len(lines) - MOST_REMARKS
    return "\n".join([*lines[:MOST_REMARKS], *([f"and {more} more"] if more > 0 else [])])


def _added(change: FileChange) -> frozenset[int]:
    if change.status is FileStatus.DELETED or change.binary or change.symlink or change.submodule:
        return frozenset()
    return frozenset(
        line.new
        for hunk in change.hunks
        for line in hunk.lines
        if line.kind is LineKind.ADDED and line.new is not None
    )


def _suffix(path: str) -> str:
    suffix = PurePosixPath(path).suffix.lower()
    return suffix if _SUFFIX.fullmatch(suffix) else ""


def _reads(analyzer: Analyzer, one: Copied) -> bool:
    return analyzer.suffixes is None or PurePosixPath(one.name).suffix in analyzer.suffixes


def _plain(text: str) -> str:
    """One line, whatever a file is called or a program says."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _skipped(context: RunContext, analyzer: Analyzer, why: str) -> None:
    log.info(
        "analyzer_skipped", analyzer=analyzer.name, repository=context.facts.repository, why=why
    )
