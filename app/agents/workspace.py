"""What an agent may read, and nothing else: one tree of the repository and the run's own files.

There is no way out: paths are checked by their parts, the tree is read as objects (no links, no
checkout), and the run's directory gives only the patches and the shared context of this run.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeVar

from app.agents.invisible import show_hidden
from app.agents.numbered import Shown, is_binary, numbered_file, numbered_patch
from app.agents.port import ToolError
from app.errors import GitError

T = TypeVar("T")

SHARED_CONTEXT = "shared-pr-context.txt"
"""The file in a run's directory that holds what people wrote about the change."""

ANSWER_CHARS = 50_000
MOST_MATCHES = 200
MOST_NAMES = 500
MATCH_CHARS = 300
MOST_FILE_BYTES = 10_000_000
"""A longer file is not shown in parts either: nobody reads it, and each part costs all of it."""

_LONG = 1 << 20
_MOST_WITHHELD = 20
_PATTERN_CHARS = 1_000
_PATH_CHARS = 4_096
_SHOWN_CHARACTER = re.compile(r"<U\+([0-9A-F]{4,5})>")


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

    async def grep(self, pattern: str, prefix: str, without: Sequence[str]) -> Sequence[Match]:
        """Lines that match an extended regular expression, below `prefix` or in that file.

        The files `without` are not opened.
        """
        ...


def _nothing_withheld(_: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Closed:
    """What a search may not open: files with the globs that say so, and the fewest paths (files,
    and folders with nothing else in them) that stand for all of them."""

    files: Mapping[str, str]
    cover: tuple[str, ...]

    def below(self, prefix: str) -> Mapping[str, str]:
        if not prefix:
            return self.files
        return {path: glob for path, glob in self.files.items() if path.startswith(f"{prefix}/")}


@dataclass(frozen=True, slots=True)
class Workspace:
    """The jail of one run.

    `patches` maps each reviewed file's path to the name of its patch (`diff/…`) in `directory`.
    `withheld` gives the policy's glob for a path whose content may reach no model, else None. Such
    files are named, and a search does not open them: what it finds elsewhere, and how long that
    takes, tells nothing about them. Which they are is looked up once.
    """

    tree: Tree
    directory: Path | None = None
    patches: Mapping[str, str] = field(default_factory=dict)
    withheld: Callable[[str], str | None] = _nothing_withheld
    _closed: list[Closed] = field(default_factory=list, init=False, repr=False, compare=False)
    _looked: asyncio.Lock = field(
        default_factory=asyncio.Lock, init=False, repr=False, compare=False
    )

    async def read_patch(self, path: str) -> str:
        """The numbered patch of a changed file, by its path or by its `diff/…` name."""
        source = self._source_of(path)
        if source is None or self.directory is None:
            raise ToolError(f"there is no patch for {path!r}; see the changed files for the names")
        self._check_withheld(source)
        content = await self._run_file(self.patches[source])
        if content is None:
            raise ToolError(f"the patch of {source} was not found; read the file itself")
        shown = await _beside(content, lambda: numbered_patch(content, ANSWER_CHARS))
        if shown.next_line is None:
            return shown.text
        rest = f"read_file {source} from start_line={shown.next_line}"
        return f"{shown.text}\n[cut here: the patch goes on; for the rest {rest}]"

    async def read_file(self, path: str, first: int = 1, last: int | None = None) -> str:
        """Numbered lines of a file of the tree, of the shared context, or of a patch."""
        if path.strip().removeprefix("./") in self.patches.values():
            return await self.read_patch(path)
        name, content = await self._content(path)
        if is_binary(content):
            raise ToolError(f"{name} is binary ({len(content)} bytes) and is not shown")
        if len(content) > MOST_FILE_BYTES:
            raise ToolError(f"{name} has {len(content)} bytes, too many to show; grep in it")
        if first < 1 or (last is not None and last < first):
            raise ToolError(f"lines {first} to {last} are no range; lines count from 1")
        shown = await _beside(content, lambda: numbered_file(content, first, last, ANSWER_CHARS))
        if not shown.text:
            raise ToolError(f"{name} has fewer than {first} lines")
        return _with_rest(shown, name)

    async def grep(self, pattern: str, path: str = "") -> str:
        """Matches as `path:line: text`, one a line; then what was not searched."""
        _check_pattern(pattern)
        prefix = clean_directory(path)
        self._check_withheld(prefix)
        closed = await self._closed_files()
        try:
            matches = await self.tree.grep(pattern, prefix, closed.cover)
        except GitError as error:
            raise ToolError(
                f"{pattern!r} could not be searched for, or not in time; is it a simple ERE?"
            ) from error
        shown = {path for path in {match.path for match in matches} if self._open(path)}
        lines = [_match_line(match) for match in matches if match.path in shown][:MOST_MATCHES]
        if lines and len(matches) >= MOST_MATCHES:
            lines.append(f"[cut here: only {MOST_MATCHES} matches; use a narrower pattern or path]")
        return "\n".join([*(lines or ["no matches"]), *_not_searched(closed.below(prefix))])

    async def glob(self, pattern: str) -> str:
        """Paths that match, one a line."""
        _check_pattern(pattern)
        clean_path(pattern)
        found = await _asked(self.tree.glob(pattern.strip().removeprefix("./")), pattern)
        shown = [self._entry(path, path) for path in found[:MOST_NAMES] if not _is_private(path)]
        return _listing(shown, len(found), "paths", "use a narrower pattern")

    async def list(self, path: str = "") -> str:
        """Names in a directory, one a line, directories with a trailing slash."""
        directory = clean_directory(path)
        found = await _asked(self.tree.list(directory), directory)
        if not found and directory:
            raise ToolError(f"the directory {directory} does not exist in this tree")
        start = f"{directory}/" if directory else ""
        shown = [self._entry(name, start + name) for name in found[:MOST_NAMES]]
        return _listing(shown, len(found), "names", "list a subdirectory or use glob")

    async def _content(self, path: str) -> tuple[str, bytes]:
        """A file's name and content. A name may be written as it was shown, `a<U+202E>b`."""
        name = clean_path(path)
        if name == SHARED_CONTEXT and self.directory is not None:
            content = await self._run_file(SHARED_CONTEXT)
            if content is not None:
                return name, content
        for spelling in dict.fromkeys((name, clean_path(_as_it_is(name)))):
            self._check_withheld(spelling)
            content = await _asked(self.tree.read(spelling), name)
            if content is not None:
                return name, content
        raise ToolError(f"{name} does not exist in this tree")

    async def _closed_files(self) -> Closed:
        async with self._looked:
            if not self._closed:
                paths = await _asked(self.tree.glob("**"), "the tree")
                self._closed.append(await asyncio.to_thread(self._closed_of, paths))
        return self._closed[0]

    def _closed_of(self, paths: Sequence[str]) -> Closed:
        files = {path: glob for path in paths if (glob := self.withheld(path)) is not None}
        return Closed(files, _cover(paths, files) if files else ())

    def _entry(self, name: str, path: str) -> str:
        """One line of a listing: the name, and whether its content is withheld."""
        glob = None if path.endswith("/") else self.withheld(path)
        return _one_line(name) if glob is None else f"{_one_line(name)} [withheld: {glob}]"

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
    if not text or "\0" in text or len(text) > _PATH_CHARS:
        raise ToolError("a path is needed, relative to the top of the repository")
    parts = PurePosixPath(text).parts
    if text.startswith(("/", "~")) or "\\" in text or ".." in parts or _is_private(text):
        raise ToolError(f"{path!r} is outside what can be read; use a path inside the repository")
    return str(PurePosixPath(text))


def clean_directory(path: str) -> str:
    """Like `clean_path`, where "", "." and "./" mean the top."""
    return "" if path.strip() in ("", ".", "./") else clean_path(path)


def _is_private(path: str) -> bool:
    return any(part.lower() == ".git" for part in path.split("/"))


def _with_rest(shown: Shown, name: str) -> str:
    if shown.next_line is None:
        return shown.text
    rest = f"read_file {name} from start_line={shown.next_line}"
    return f"{shown.text}\n[cut here: the file goes on; for the rest {rest}]"


def _match_line(match: Match) -> str:
    text = show_hidden(match.text.rstrip("\r\n"))
    cut = text if len(text) <= MATCH_CHARS else f"{text[:MATCH_CHARS]} [line cut here]"
    return f"{_one_line(match.path)}:{match.line}: {cut}"


def _one_line(name: str) -> str:
    """A name that holds line breaks can't look like more than one."""
    shown = show_hidden(name)
    return re.sub(r"[\t\r\n]", lambda match: f"<U+{ord(match.group()):04X}>", shown)


def _as_it_is(name: str) -> str:
    return _SHOWN_CHARACTER.sub(lambda match: chr(int(match.group(1), 16)), name)


def _cover(paths: Sequence[str], closed: Mapping[str, str]) -> tuple[str, ...]:
    """The fewest files and folders that are all of `closed` and nothing else of `paths`."""
    open_folders = {folder for path in paths if path not in closed for folder in _folders_of(path)}
    tops = (
        next((folder for folder in _folders_of(path) if folder not in open_folders), path)
        for path in closed
    )
    return tuple(dict.fromkeys(tops))


def _folders_of(path: str) -> list[str]:
    """The folders a file is in, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _not_searched(closed: Mapping[str, str]) -> list[str]:
    """Said whatever was found, so that it is no answer about these files."""
    if not closed:
        return []
    shown = [f"{_one_line(path)} ({glob})" for path, glob in list(closed.items())[:_MOST_WITHHELD]]
    more = f" and {len(closed) - len(shown)} more" if len(closed) > len(shown) else ""
    return [f"[not searched, withheld by policy: {', '.join(shown)}{more}]"]


def _check_pattern(pattern: str) -> None:
    if len(pattern) > _PATTERN_CHARS:
        raise ToolError(f"the pattern is longer than {_PATTERN_CHARS} characters")


async def _asked(answer: Awaitable[T], what: str) -> T:
    """What the tree answers; git's own words, which name folders of this machine, stay here."""
    try:
        return await answer
    except GitError as error:
        raise ToolError(f"{what} can't be read, it is too large or takes too long") from error


async def _beside(content: bytes, number: Callable[[], Shown]) -> Shown:
    """Number a long text in a thread, so that other runs go on."""
    return await asyncio.to_thread(number) if len(content) > _LONG else number()


def _listing(lines: list[str], total: int, what: str, remedy: str) -> str:
    if total == 0:
        return f"no {what}"
    if len(lines) < total:
        lines = [*lines, f"[cut here: {len(lines)} of {total} {what}; {remedy}]"]
    return "\n".join(lines)
