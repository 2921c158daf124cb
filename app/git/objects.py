"""A commit's files without a checkout: `cat-file`, `ls-tree` and `grep` on git's own objects.

There are no links to follow here: what is not a regular file in the tree does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from app.errors import GitError
from app.git.process import Remote, checked_sha, git

MAX_HITS = 200
"""Search hits given at once; the rest would only fill a model's window."""

MAX_HIT_CHARS = 500


@dataclass(frozen=True, slots=True)
class GrepHit:
    """One matching line, 1-based, cut at MAX_HIT_CHARS."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of one commit. `remote` lets a partial clone fetch the contents it lacks."""

    git_dir: Path
    commit: str
    remote: Remote | None = None

    async def read(self, path: str) -> bytes | None:
        """The bytes of a regular file; None if there is none of that name."""
        if not is_inside(path):
            return None
        entry = await self._run(
            "ls-tree", "-z", "--full-tree", self.commit, "--", f":(literal){path}"
        )
        blob = _regular_blob(entry, path)
        if blob is None:
            return None
        return await self._run("cat-file", "blob", blob)

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
            out = await self._run("ls-tree", "-z", spec)
        except GitError:
            return ()
        return tuple(sorted(_entries(out)))

    async def files(self) -> tuple[str, ...]:
        """Every regular file of the tree."""
        out = await self._run("ls-tree", "-r", "-z", "--full-tree", self.commit)
        return tuple(
            name for line in out.split(b"\0") if line and (name := _regular_name(line)) is not None
        )

    async def glob(self, pattern: str) -> tuple[str, ...]:
        """Files whose path matches: `*` within a name, `**` over directories, `?` one character."""
        matches = glob_matcher(pattern)
        return tuple(path for path in await self.files() if matches(path))

    async def grep(self, pattern: str, prefix: str = "") -> tuple[GrepHit, ...]:
        """Lines that match an extended regular expression, below `prefix`, at most MAX_HITS.

        Raises GitError for an expression git can't read.
        """
        where = prefix.strip("/")
        if where not in ("", ".") and not is_inside(where):
            return ()
        paths = ["--", f":(literal){where}"] if where not in ("", ".") else []
        out = await self._run(
            "grep", "-n", "-I", "-z", "-E", "--full-name", "--no-color", "--no-recurse-submodules",
            "--threads=1", f"--max-count={MAX_HITS}", "-e", pattern, self.commit, *paths,
            accept=(0, 1),
        )  # fmt: skip
        return hits_of(out, f"{self.commit}:")

    async def _run(self, *arguments: str, accept: tuple[int, ...] = (0,)) -> bytes:
        return await git(arguments, cwd=self.git_dir, remote=self.remote, accept=accept)


def tree_of(git_dir: Path, commit: str, remote: Remote | None = None) -> Tree:
    """The tree of a commit of this repository. Raises GitError for what is no commit id."""
    return Tree(git_dir, checked_sha(commit), remote)


def is_inside(path: str) -> bool:
    """Whether the path is a plain relative one that can't leave the tree or enter `.git`."""
    if not path or path.startswith("/") or "\0" in path or "\\" in path:
        return False
    return all(
        part not in ("", ".", "..") and part.casefold() != ".git" for part in path.split("/")
    )


def hits_of(out: bytes, prefix: str) -> tuple[GrepHit, ...]:
    """The hits in the output of `git grep -n -z`; `prefix` stands before each path."""
    hits: list[GrepHit] = []
    for line in out.split(b"\n"):
        parts = line.split(b"\0", 2)
        if len(parts) == 3 and parts[1].isdigit():
            path = parts[0].decode("utf-8", "surrogateescape").removeprefix(prefix)
            text = parts[2].decode("utf-8", "replace")[:MAX_HIT_CHARS]
            hits.append(GrepHit(path, int(parts[1]), text))
            if len(hits) == MAX_HITS:
                break
    return tuple(hits)


@lru_cache(maxsize=256)
def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """A test for one glob. A pattern without `/` is looked for at any depth."""
    wanted = pattern.lstrip("/")
    if "/" not in wanted:
        wanted = f"**/{wanted}"
    tokens = re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", wanted[:1000])
    parts = [_GLOB.get(token) or re.escape(token) for token in tokens]
    compiled = re.compile("".join(parts), re.DOTALL)
    return lambda path: compiled.fullmatch(path) is not None


_GLOB = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _regular_blob(out: bytes, path: str) -> str | None:
    for line in out.split(b"\0"):
        head, _, name = line.partition(b"\t")
        fields = head.split(b" ")
        if len(fields) == 3 and name.decode("utf-8", "surrogateescape") == path:
            return fields[2].decode() if fields[0] in (b"100644", b"100755") else None
    return None


def _regular_name(line: bytes) -> str | None:
    head, _, name = line.partition(b"\t")
    return name.decode("utf-8", "surrogateescape") if head.startswith(b"100") else None


def _entries(out: bytes) -> list[str]:
    names = []
    for line in out.split(b"\0"):
        head, _, name = line.partition(b"\t")
        if head.startswith(b"100"):
            names.append(name.decode("utf-8", "surrogateescape"))
        elif head.startswith(b"040"):
            names.append(name.decode("utf-8", "surrogateescape") + "/")
    return names
