"""A commit's files without a checkout: `cat-file`, `ls-tree` and `grep` on git's own objects.

There are no links to follow here: what is not a regular file in the tree does not exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import GitError
from app.git.globs import matching
from app.git.locks import Hold
from app.git.mirror_folder import noting_damage
from app.git.process import READ_MEMORY, Remote, checked_sha, git, is_storable

MAX_HITS = 200
"""Search hits given at once; the rest would only fill a model's window."""

MAX_HIT_CHARS = 500
MAX_FILE_BYTES = 50 * 1024 * 1024
"""A larger file is not read: nobody reviews it, and memory is for all runs of the machine."""

_PORTION_BYTES = 64 * 1024 * 1024
"""Contents held at once while only their beginnings are wanted."""

GREP_OUTPUT = 4 * 1024 * 1024
"""Bytes of hits after which a search has found enough."""

GREP_TIMEOUT_S = 20.0
"""Expressions are a model's; some of them never end."""

GREP_MEMORY = 512 * 1024 * 1024
"""Some want gigabytes before they begin: counted repetitions of counted repetitions."""

LISTING_OUTPUT = 32 * 1024 * 1024
"""Bytes of `ls-tree`: a listing of some 300,000 files. A few objects can be millions of files."""

_MAX_PATHS_CHARS = 256 * 1024
"""Arguments of one process: Linux takes two megabytes, others less."""


@dataclass(frozen=True, slots=True)
class GrepHit:
    """One matching line, 1-based, cut at MAX_HIT_CHARS."""

    path: str
    line: int
    text: str


class _Once:
    """Work that several may want at the same time: one does it, the others wait. What failed is
    tried again."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._done = False

    async def do(self, work: Callable[[], Awaitable[None]]) -> None:
        async with self._turn:
            if not self._done:
                await work()
                self._done = True


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of one commit. `remote` lets a partial clone fetch the contents it lacks."""

    git_dir: Path
    commit: str
    remote: Remote | None = None
    hold: Hold | None = field(default=None, repr=False, compare=False)
    _contents: _Once = field(default_factory=_Once, repr=False, compare=False)

    async def read(self, path: str) -> bytes | None:
        """The bytes of a regular file; None if there is none of that name.

        Raises GitError for a file over MAX_FILE_BYTES.
        """
        if not is_inside(path):
            return None
        entry = await self._run(
            "ls-tree", "-l", "-z", "--full-tree", self.commit, "--", f":(literal){path}"
        )
        found = _regular_blob(entry, path)
        if found is None:
            return None
        blob, size = found
        if size > MAX_FILE_BYTES:
            raise GitError(f"{path} is over {MAX_FILE_BYTES:,} bytes and is not read.")
        return await self._run("cat-file", "blob", blob)

    async def heads(self, paths: Iterable[str], most: int) -> dict[str, bytes]:
        """The first `most` bytes of these regular files, in three processes however many they are.

        What is no regular file, or over MAX_FILE_BYTES, is left out.
        """
        wanted = frozenset(path for path in paths if is_inside(path))
        if not wanted:
            return {}
        listed = await self._run("ls-tree", "-r", "-z", "--full-tree", self.commit)
        blobs = {path: blob for path, blob in _regular_files(listed) if path in wanted}
        heads: dict[str, bytes] = {}
        sizes = await self._ask("--batch-check=%(objectname) %(objectsize)", blobs.values())
        for portion in _portions(sizes):
            out = await self._ask("--batch", portion)
            heads |= {name: body[:most] for name, body in _bodies(out)}
        return {path: heads[blob] for path, blob in blobs.items() if blob in heads}

    async def list(self, prefix: str = "") -> tuple[str, ...]:
        """The entries of a directory; names of directories end with `/`."""
        folder = prefix.strip("/")
        if folder in (".", ""):
            spec = self.commit
        elif is_inside(folder):
            spec = f"{self.commit}:{folder}"
        else:
            return ()
        try:
            out = await self._run("ls-tree", "-z", spec, enough=LISTING_OUTPUT)
        except GitError:
            return ()
        return tuple(sorted(_entries(out)))

    async def files(self) -> tuple[str, ...]:
        """Every regular file of the tree. Raises GitError when there are too many to list."""
        out = await self._run(
            "ls-tree", "-r", "-z", "--full-tree", self.commit, enough=LISTING_OUTPUT
        )
        if len(out) >= LISTING_OUTPUT:
            raise GitError(f"{self.commit[:10]} has too many files to list all of them.")
        return tuple(path for path, _ in _regular_files(out))

    async def glob(self, pattern: str) -> tuple[str, ...]:
        """Files whose path matches: `*` within a name, `**` over directories, `?` one character.

        Raises GitError for too many files, or for a pattern that takes over GLOB_TIMEOUT_S.
        """
        return await matching(await self.files(), pattern)

    async def grep(
        self, pattern: str, prefix: str = "", without: Sequence[str] = ()
    ) -> tuple[GrepHit, ...]:
        """Lines that match an extended regular expression, below `prefix`, at most MAX_HITS.

        Files and folders of `without` are not searched. Raises GitError for an expression git
        can't read, that takes over GREP_TIMEOUT_S, or that wants over GREP_MEMORY.
        """
        where = prefix.strip("/")
        if where not in ("", ".") and not is_inside(where):
            return ()
        await self.fetch_contents()
        with noting_damage(self.git_dir, self.hold):
            return await search(
                pattern, where, cwd=self.git_dir, commit=self.commit, remote=self.remote,
                without=without,
            )  # fmt: skip

    async def fetch_contents(self) -> None:
        """Get what a partial clone lacks of this commit's files in one request, not one by one.

        It is looked for once; what git finds missing later, it gets by itself.
        """
        if self.remote is not None:
            await self._contents.do(self._fetch_contents)

    async def _fetch_contents(self) -> None:
        out = await self._run(
            "rev-list", "--objects", "--missing=print", "--no-object-names", "--no-walk",
            self.commit, "--",
        )  # fmt: skip
        missing = [line[1:] for line in out.split(b"\n") if line.startswith(b"?")]
        if missing:
            await self._run(
                "-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags",
                "--no-write-fetch-head", "--no-auto-maintenance", "--filter=blob:none",
                "--stdin", "origin", stdin=b"\n".join(missing) + b"\n",
            )  # fmt: skip

    async def _ask(self, how: str, blobs: Iterable[str]) -> bytes:
        names = "".join(f"{blob}\n" for blob in dict.fromkeys(blobs))
        return await self._run("cat-file", "--buffer", how, stdin=names.encode())

    async def _run(
        self, *arguments: str, stdin: bytes | None = None, enough: int | None = None
    ) -> bytes:
        with noting_damage(self.git_dir, self.hold):
            return await git(
                arguments, cwd=self.git_dir, remote=self.remote, stdin=stdin, enough=enough,
                memory=READ_MEMORY,
            )  # fmt: skip


async def search(
    pattern: str,
    where: str,
    *,
    cwd: Path,
    commit: str | None,
    remote: Remote | None = None,
    without: Sequence[str] = (),
) -> tuple[GrepHit, ...]:
    """What `git grep` finds in a commit, or in the files of the checkout `cwd` (None).

    `where` is a path ("" or ".": everywhere), `without` are paths that are not opened.
    """
    paths = [f":(literal){where}"] if where not in ("", ".") else []
    paths += [f":(exclude,literal){path}" for path in without]
    if sum(len(path) for path in paths) > _MAX_PATHS_CHARS:
        raise GitError("There are too many files that may not be searched.")
    out = await git(
        (*_GREP, "-e", pattern, *((commit,) if commit else ("--untracked",)), "--", *paths),
        cwd=cwd,
        remote=remote,
        accept=(0, 1),
        timeout_s=GREP_TIMEOUT_S,
        enough=GREP_OUTPUT,
        memory=GREP_MEMORY,
    )
    return hits_of(out, f"{commit}:" if commit else "")


_GREP = (
    "grep", "-n", "-z", "-I", "-E", "--full-name", "--no-color", "--no-column",
    "--no-recurse-submodules", "--threads=1", f"--max-count={MAX_HITS}",
)  # fmt: skip
"""A search whose output `hits_of` reads, whatever the machine's settings."""


def tree_of(git_dir: Path, commit: str, remote: Remote | None = None) -> Tree:
    """The tree of a commit, in a repository that nobody removes. Raises GitError for no commit."""
    return Tree(git_dir, checked_sha(commit), remote)


def is_inside(path: str) -> bool:
    """Whether the path is a plain relative one that can't leave the tree or enter `.git`."""
    if not path or path.startswith("/") or "\0" in path or "\\" in path or not is_storable(path):
        return False
    return all(
        part not in ("", ".", "..") and part.casefold() != ".git" for part in path.split("/")
    )


def hits_of(out: bytes, prefix: str) -> tuple[GrepHit, ...]:
    """The hits in what `git grep` prints with _GREP; `prefix` stands before each path.

    Read from left to right, since names may hold line breaks. A last hit that was cut is left out.
    """
    hits: list[GrepHit] = []
    at = 0
    while len(hits) < MAX_HITS:
        name_end = out.find(b"\0", at)
        number_end = out.find(b"\0", name_end + 1)
        line_end = out.find(b"\n", number_end + 1)
        if min(name_end, number_end, line_end) < 0:
            break
        path = out[at:name_end].decode("utf-8", "surrogateescape").removeprefix(prefix)
        text = out[number_end + 1 : line_end].decode("utf-8", "replace")[:MAX_HIT_CHARS]
        hits.append(GrepHit(path, int(out[name_end + 1 : number_end]), text))
        at = line_end + 1
    return tuple(hits)


def _regular_blob(out: bytes, path: str) -> tuple[str, int] | None:
    """The object and its size from `ls-tree -l -z`, if it is a regular file."""
    for line in out.split(b"\0"):
        head, _, name = line.partition(b"\t")
        fields = head.split()
        if len(fields) == 4 and name.decode("utf-8", "surrogateescape") == path:
            is_file = fields[0].startswith(b"100") and fields[3].isdigit()
            return (fields[2].decode(), int(fields[3])) if is_file else None
    return None


def _regular_files(out: bytes) -> Iterator[tuple[str, str]]:
    """Path and object of each regular file in what `ls-tree -r -z` prints."""
    for line in out.split(b"\0"):
        head, _, name = line.partition(b"\t")
        if head.startswith(b"100"):
            yield name.decode("utf-8", "surrogateescape"), head.rpartition(b" ")[2].decode()


def _portions(sizes: bytes) -> Iterator[tuple[str, ...]]:
    """The objects of a list of names and sizes, as many at a time as fit in _PORTION_BYTES."""
    portion: list[str] = []
    total = 0
    for line in sizes.splitlines():
        name, _, size = line.decode().partition(" ")
        if not size.isdigit() or int(size) > MAX_FILE_BYTES:
            continue
        if portion and total + int(size) > _PORTION_BYTES:
            yield tuple(portion)
            portion, total = [], 0
        portion.append(name)
        total += int(size)
    if portion:
        yield tuple(portion)


def _bodies(out: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each object in what `cat-file --batch` prints."""
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        name, _, size = out[at:end].split(b" ")
        yield name.decode(), out[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)


def _entries(out: bytes) -> list[str]:
    names = []
    for line in out.split(b"\0"):
        head, _, name = line.partition(b"\t")
        if head.startswith(b"100"):
            names.append(name.decode("utf-8", "surrogateescape"))
        elif head.startswith(b"040"):
            names.append(name.decode("utf-8", "surrogateescape") + "/")
    return names
