"""The double's repositories: real bare git repositories, driven by real git."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.sandbox.github.diffs import Diff, parse_diff
from app.sandbox.github.state import Account

NOBODY = "0" * 40
# Diffs and answers kept in memory; beyond that the memory starts anew.
MAX_REMEMBERED = 2048
_SHA = re.compile(r"[0-9a-f]{40}")
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogAllRefUpdates = false
[uploadpack]
\tallowFilter = true
\tallowAnySHA1InWant = true
[http]
\treceivepack = true
[receive]
\thideRefs = refs/pull
\tautogc = false
[gc]
\tauto = 0
"""


class GitError(Exception):
    """A git command failed; the message is its standard error."""


@dataclass(frozen=True)
class Person:
    """The author of a commit."""

    name: str
    email: str


def person_of(account: Account) -> Person:
    """The commit identity GitHub gives an account: `<id>+<login>@users.noreply.github.com`."""
    return Person(account.login, f"{account.id}+{account.login}@users.noreply.github.com")


@dataclass(frozen=True)
class NewCommit:
    """What a commit about to be made says."""

    message: str
    author: Person
    at: datetime


# Whole files by path; None deletes.
Files = Mapping[str, str | bytes | None]


@dataclass(frozen=True)
class CommitFacts:
    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Person
    committer: Person
    authored_at: str
    committed_at: str
    message: str


def git_environment(home: Path) -> dict[str, str]:
    """An environment in which no configuration of the machine or the user counts."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
    }


class GitStore:
    """Git commands on bare repositories under one directory. Failures raise `GitError`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = git_environment(root)
        self._diffs: dict[tuple[Path, str, str], Diff] = {}
        self._answers: dict[tuple[str, ...], str] = {}

    async def run(
        self,
        path: Path,
        *args: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        allowed: tuple[int, ...] = (0,),
    ) -> bytes:
        """Standard output of `git --git-dir=path …`."""
        process = await asyncio.create_subprocess_exec(
            "git",
            f"--git-dir={path}",
            *args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**self.environment, **(env or {})},
        )
        out, err = await process.communicate(stdin)
        if process.returncode not in allowed:
            raise GitError(err.decode("utf-8", "replace").strip() or f"git {args[0]} failed")
        return out

    async def text(self, path: Path, *args: str, allowed: tuple[int, ...] = (0,)) -> str:
        return (await self.run(path, *args, allowed=allowed)).decode("utf-8", "replace").strip()

    def create(self, owner: str, name: str, default_branch: str, hook: str) -> Path:
        """A new bare repository `root/owner/name.git` with `hook` as its update hook."""
        path = self.root / owner / f"{name}.git"
        # The files of `git init --bare`, without the process and its templates.
        for directory in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "hooks"):
            (path / directory).mkdir(parents=True)
        files = {
            "HEAD": f"ref: refs/heads/{default_branch}\n",
            "config": _CONFIG,
            "hooks/update": hook,
        }
        for file, text in files.items():
            (path / file).write_text(text, encoding="utf-8")
        (path / "hooks/update").chmod(0o755)
        return path

    async def resolve(self, path: Path, revision: str) -> str | None:
        """The commit a branch, tag, `refs/…` or SHA names."""
        if "\0" in revision:
            return None
        args = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return await self.text(path, *args, allowed=(0, 1, 128)) or None

    async def branch(self, path: Path, name: str) -> str | None:
        """The tip of a branch. Loose refs are read as files, which saves most processes."""
        loose = None if ".." in name else _loose_ref(path, f"refs/heads/{name}")
        return loose or await self.resolve(path, f"refs/heads/{name}")

    async def refs(self, path: Path, prefix: str = "refs/heads/") -> dict[str, str]:
        """Full ref name to object id."""
        text = await self.text(path, "for-each-ref", "--format=%(refname) %(objectname)", prefix)
        pairs = (line.rsplit(" ", 1) for line in text.splitlines())
        return {ref: sha for ref, sha in pairs if sha}

    async def move_refs(self, path: Path, refs: Mapping[str, str | None]) -> None:
        """Set refs to commits, or delete them (None), all or none."""
        lines = [f"update {r} {sha}\n" if sha else f"delete {r}\n" for r, sha in refs.items()]
        await self.run(path, "update-ref", "--stdin", stdin="".join(lines).encode())

    async def merge_base(self, path: Path, one: str, other: str) -> str | None:
        """The best common ancestor of two commits."""
        args = ("merge-base", one, other)
        return await self._remembered(path, *args) or None

    async def _remembered(self, path: Path, *args: str) -> str:
        """Output of a command whose arguments are commits: its answer never changes.

        Exit code 1 is an answer too ("none", or "conflict").
        """
        key = (str(path), *args)
        if key not in self._answers:
            if len(self._answers) >= MAX_REMEMBERED:
                self._answers.clear()
            self._answers[key] = await self.text(path, *args, allowed=(0, 1))
        return self._answers[key]

    async def is_ancestor(self, path: Path, older: str, newer: str) -> bool:
        return await self.merge_base(path, older, newer) == older

    async def diff(self, path: Path, base: str, head: str) -> Diff:
        """The pull-request diff `base...head`: from their merge base to `head`."""
        start = await self.merge_base(path, base, head)
        return await self.between(path, start, head)

    async def between(self, path: Path, start: str | None, head: str) -> Diff:
        """The diff of two commits, from an empty tree when `start` is None. Cached."""
        key = (path, start or "", head)
        if key not in self._diffs:
            if len(self._diffs) >= MAX_REMEMBERED:
                self._diffs.clear()
            start = start or await self._empty_tree(path)
            options = ("--patch-with-raw", "-z", "--no-abbrev", "--full-index", "-M")
            safe = ("--no-color", "--no-ext-diff", "--no-textconv")
            out = await self.run(path, "diff", *options, *safe, start, head, "--")
            self._diffs[key] = parse_diff(out)
        return self._diffs[key]

    async def changes(self, path: Path, before: str, after: str, file: str) -> Diff:
        """What happened to one file between two commits, without context lines."""
        options = ("--patch-with-raw", "-z", "--no-abbrev", "-U0", "--no-ext-diff")
        return parse_diff(await self.run(path, "diff", *options, before, after, "--", file))

    async def _empty_tree(self, path: Path) -> str:
        return (await self.run(path, "hash-object", "-t", "tree", "--stdin")).decode().strip()

    async def commits(self, path: Path, base: str, head: str) -> list[str]:
        """Commits of `base..head`, oldest first."""
        return (await self._remembered(path, "rev-list", "--reverse", f"{base}..{head}")).split()

    async def commit_facts(self, path: Path, sha: str) -> CommitFacts:
        form = "%H%x00%T%x00%P%x00%an%x00%ae%x00%cn%x00%ce%x00%aI%x00%cI%x00%B"
        text = await self.text(path, "show", "--no-patch", f"--format={form}", sha)
        parts = text.split("\0")
        return CommitFacts(
            sha=parts[0],
            tree=parts[1],
            parents=tuple(parts[2].split()),
            author=Person(parts[3], parts[4]),
            committer=Person(parts[5], parts[6]),
            authored_at=parts[7],
            committed_at=parts[8],
            message=parts[9].strip(),
        )

    async def merge_tree(self, path: Path, base: str, head: str) -> str | None:
        """The tree of a merge, None when it conflicts (git then lists the conflicts)."""
        lines = (await self._remembered(path, "merge-tree", "--write-tree", base, head)).split("\n")
        return lines[0] if len(lines) == 1 and lines[0] else None

    async def commit_tree(
        self, path: Path, tree: str, parents: tuple[str, ...], new: NewCommit
    ) -> str:
        """A new commit object; GitHub is its committer, as for commits made on the web."""
        flags = [flag for parent in parents for flag in ("-p", parent)]
        env = {
            "GIT_AUTHOR_NAME": new.author.name,
            "GIT_AUTHOR_EMAIL": new.author.email,
            "GIT_AUTHOR_DATE": new.at.isoformat(),
            "GIT_COMMITTER_NAME": "GitHub",
            "GIT_COMMITTER_EMAIL": "noreply@github.com",
            "GIT_COMMITTER_DATE": new.at.isoformat(),
        }
        args = ("commit-tree", tree, *flags)
        return (await self.run(path, *args, stdin=new.message.encode(), env=env)).decode().strip()

    async def commit_files(
        self, path: Path, branch: str, parent: str | None, files: Files, new: NewCommit
    ) -> str:
        """Commit whole files (None deletes) on a branch and move the branch; returns the SHA."""
        stream = _import_stream(branch, parent, files, new)
        await self.run(path, "fast-import", "--quiet", "--force", stdin=stream)
        sha = await self.branch(path, branch)
        if sha is None:  # pragma: no cover - fast-import has just written it
            raise GitError(f"branch {branch} was not written")
        return sha


def _loose_ref(path: Path, ref: str) -> str | None:
    try:
        text = (path / ref).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return text if _SHA.fullmatch(text) else None


def _import_stream(branch: str, parent: str | None, files: Files, new: NewCommit) -> bytes:
    stamp = f"{new.author.name} <{new.author.email}> {int(new.at.timestamp())} +0000"
    text = new.message.encode()
    head = f"commit refs/heads/{branch}\nauthor {stamp}\ncommitter {stamp}\ndata {len(text)}\n"
    parts = [head.encode(), text, b"\n"]
    if parent:
        parts.append(f"from {parent}\n".encode())
    for name, content in files.items():
        quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        if content is None:
            parts.append(f"D {quoted}\n".encode())
            continue
        data = content.encode() if isinstance(content, str) else content
        parts.append(f"M 100644 inline {quoted}\ndata {len(data)}\n".encode() + data + b"\n")
    return b"".join(parts)
