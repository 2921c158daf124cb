"""What an agent may read, and nothing else: one tree of the repository and the run's own files.

There is no way out: paths are checked by their parts, the tree is read as objects (no links, no
checkout), and the run's directory gives only the patches and the shared context of this run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

from app.agents.invisible import show_hidden
from app.agents.numbered import Shown, is_binary, numbered_file, numbered_patch
from app.agents.port import ToolError
from app.errors import GitError

SHARED_CONTEXT = "shared-pr-context.txt"
"""The file in a run's directory that holds what people wrote about the change."""

ANSWER_CHARS = 50_000
MOST_MATCHES = 200
MOST_NAMES = 500
MATCH_CHARS = 300


class Match(Protocol):
    """One line that a search found."""

    @property
    def path(self) -> str: ...

    @property
    def line(self) -> int: ...

    @property
    def text(self) -> str: ...


class Tree(Protocol):
    """The files of one commit. Paths are repository-relative, parts separated by `/`.

    A `prefix` of "" means the whole tree.
    """

    async def read(self, path: str) -> bytes | None:
        """The content of a file; None when there is no file of that name."""
        ...

    async def list(self, prefix: str) -> Sequence[str]:
        """Names directly below the directory, those of directories with a trailing `/`."""
        ...

    async def glob(self, pattern: str) -> Sequence[str]:
        """Paths of files that match; `*` stays within a name, `**` crosses directories."""
        ...

    async def grep(self, pattern: str, prefix: str) -> Sequence[Match]:
        """Lines that match an extended regular expression, below `prefix` or in that file."""
        ...


def _nothing_withheld(_: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Workspace:
    """The jail of one run.

    `patches` maps each reviewed file's path to the name of its patch (`diff/…`) in `directory`.
    `withheld` gives the policy's glob for a path whose content may reach no model, else None.
    """

    tree: Tree
    directory: Path | None = None
    patches: Mapping[str, str] = field(default_factory=dict)
    withheld: Callable[[str], str | None] = _nothing_withheld

    async def read_patch(self, path: str) -> str:
        """The numbered patch of a changed file, by its path or by its `diff/…` name."""
        source = self._source_of(path)
        if source is None or self.directory is None:
            raise ToolError(f"there is no patch for {path!r}; see the changed files for the names")
        self._check_withheld(source)
        content = await self._run_file(self.patches[source])
        if content is None:
            raise ToolError(f"the patch of {source} was not found; read the file itself")
        shown = numbered_patch(content, ANSWER_CHARS)
        if shown.next_line is None:
            return shown.text
        rest = f"read_file {source} from start_line={shown.next_line}"
        return f"{shown.text}\n[cut here: the patch goes on; for the rest {rest}]"

    async def read_file(self, path: str, first: int = 1, last: int | None = None) -> str:
        """Numbered lines of a file of the tree, of the shared context, or of a patch."""
        if path.strip().removeprefix("./") in self.patches.values():
            return await self.read_patch(path)
        name = clean_path(path)
        content = await self._content(name)
        if content is None:
            raise ToolError(f"{name} does not exist in this tree")
        if is_binary(content):
            raise ToolError(f"{name} is binary ({len(content)} bytes) and is not shown")
        if first < 1 or (last is not None and last < first):
            raise ToolError(f"lines {first} to {last} are no range; lines count from 1")
        shown = numbered_file(content, first, last, ANSWER_CHARS)
        if not shown.text:
            raise ToolError(f"{name} has fewer than {first} lines")
        return _with_rest(shown, name)

    async def grep(self, pattern: str, path: str = "") -> str:
        """Matches as `path:line: text`, one a line."""
        prefix = clean_directory(path)
        try:
            matches = await self.tree.grep(pattern, prefix)
        except GitError as error:
            raise ToolError(f"{pattern!r} could not be searched for; is it an ERE?") from error
        lines = [_match_line(match) for match in matches if self._open(match.path)][:MOST_MATCHES]
        if lines and len(matches) >= MOST_MATCHES:
            lines.append(f"[cut here: only {MOST_MATCHES} matches; use a narrower pattern or path]")
        return "\n".join(lines) or "no matches"

    async def glob(self, pattern: str) -> str:
        """Paths that match, one a line."""
        clean_path(pattern)
        found = list(await self.tree.glob(pattern.removeprefix("./")))
        shown = [show_hidden(path) for path in found[:MOST_NAMES]]
        return _listing(shown, len(found), "paths", "use a narrower pattern")

    async def list(self, path: str = "") -> str:
        """Names in a directory, one a line, directories with a trailing slash."""
        directory = clean_directory(path)
        found = list(await self.tree.list(directory))
        if not found and directory:
            raise ToolError(f"the directory {directory} does not exist in this tree")
        shown = [show_hidden(name) for name in found[:MOST_NAMES]]
        return _listing(shown, len(found), "names", "list a subdirectory or use glob")

    async def _content(self, name: str) -> bytes | None:
        if name == SHARED_CONTEXT and self.directory is not None:
            return await self._run_file(SHARED_CONTEXT)
        self._check_withheld(name)
        return await self.tree.read(name)

    async def _run_file(self, name: str) -> bytes | None:
        """A file of the run's directory. `name` is ours, never the model's."""
        if self.directory is None:
            return None
        file = self.directory / clean_path(name)
        return await asyncio.to_thread(lambda: file.read_bytes() if file.is_file() else None)

    def _source_of(self, path: str) -> str | None:
        """The changed file that `path` means, by its own name or that of its patch."""
        wanted = path.strip().removeprefix("./")
        if wanted in self.patches:
            return wanted
        return next((source for source, name in self.patches.items() if name == wanted), None)

    def _open(self, path: str) -> bool:
        return self.withheld(path) is None and not _is_private(path)

    def _check_withheld(self, path: str) -> None:
        glob = self.withheld(path)
        if glob is not None:
            raise ToolError(f"{path} is withheld by policy ({glob}): its content goes to no model")


def clean_path(path: str) -> str:
    """A relative path below the root. Raises ToolError for anything that points elsewhere."""
    text = path.strip().removeprefix("./")
    if not text or "\0" in text:
        raise ToolError("a path is needed, relative to the top of the repository")
    parts = PurePosixPath(text).parts
    if text.startswith(("/", "~")) or "\\" in text or ".." in parts or _is_private(text):
        raise ToolError(f"{path!r} is outside what can be read; use a path inside the repository")
    return str(PurePosixPath(text))


def clean_directory(path: str) -> str:
    """Like `clean_path`, where "", "." and "./" mean the top."""
    return "" if path.strip() in ("", ".", "./") else clean_path(path)


def _is_private(path: str) -> bool:
    return any(part.lower() == ".git" for part in PurePosixPath(path).parts)


def _with_rest(shown: Shown, name: str) -> str:
    if shown.next_line is None:
        return shown.text
    rest = f"read_file {name} from start_line={shown.next_line}"
    return f"{shown.text}\n[cut here: the file goes on; for the rest {rest}]"


def _match_line(match: Match) -> str:
    text = show_hidden(match.text.rstrip("\r\n"))
    cut = text if len(text) <= MATCH_CHARS else f"{text[:MATCH_CHARS]} [line cut here]"
    return f"{show_hidden(match.path)}:{match.line}: {cut}"


def _listing(lines: list[str], total: int, what: str, remedy: str) -> str:
    if total == 0:
        return f"no {what}"
    if len(lines) < total:
        lines = [*lines, f"[cut here: {len(lines)} of {total} {what}; {remedy}]"]
    return "\n".join(lines)
