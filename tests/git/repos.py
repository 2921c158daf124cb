"""Real git repositories for tests, made without the machine's configuration."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.git.mirror import Repository

FILE, EXECUTABLE, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Author",
    "GIT_AUTHOR_EMAIL": "author@example.com",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "Author",
    "GIT_COMMITTER_EMAIL": "author@example.com",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}

Content = bytes | tuple[str, bytes]
"""A file's bytes, or a mode with a file's bytes, a link's target or a submodule's commit."""

Tree = Mapping[bytes, Content] | Mapping[str, Content]


def git(*arguments: str, cwd: Path, stdin: bytes | None = None) -> bytes:
    """What git prints."""
    return subprocess.run(
        ["git", *arguments], cwd=cwd, env=ENVIRONMENT, input=stdin, capture_output=True, check=True
    ).stdout


@dataclass(frozen=True)
class BareRepo:
    """A bare repository, filled with whole trees: any name and any mode, nothing on disk."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> BareRepo:
        path.mkdir(parents=True)
        git("init", "--quiet", "--bare", "--initial-branch=main", ".", cwd=path)
        with (path / "config").open("a") as config:
            config.write("[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n")
        return cls(path)

    @property
    def url(self) -> str:
        return self.path.as_uri()

    @property
    def repository(self) -> Repository:
        return Repository(self.path)

    def commit(self, tree: Tree, *, parent: str | None = None, ref: str = "refs/heads/main") -> str:
        """A commit of exactly these files, on a ref. Returns its id."""
        return self.commits([tree], parent=parent, ref=ref)[0]

    def commits(
        self, trees: Sequence[Tree], *, parent: str | None = None, ref: str = "refs/heads/main"
    ) -> list[str]:
        """One commit on the other, by one process. Returns their ids."""
        parts = [b"reset %s\n" % ref.encode()]
        parts.append(b"from %s\n" % parent.encode() if parent else b"")
        for number, tree in enumerate(trees, start=1):
            parts.append(b"commit %s\nmark :%d\n" % (ref.encode(), number))
            parts.append(b"committer A <a@example.com> 0 +0000\ndata 1\nm\ndeleteall\n")
            parts += [_entry(name, content) for name, content in tree.items()]
            parts.append(b"\nget-mark :%d\n" % number)
        out = git("fast-import", "--quiet", "--force", cwd=self.path, stdin=b"".join(parts))
        return out.decode().split()

    def tip(self, ref: str = "refs/heads/main") -> str:
        return git("rev-parse", ref, cwd=self.path).decode().strip()


def _entry(name: bytes | str, content: Content) -> bytes:
    mode, data = content if isinstance(content, tuple) else (FILE, content)
    path = _quoted(name if isinstance(name, bytes) else os.fsencode(name))
    if mode == SUBMODULE:
        return b"M %s %s %s\n" % (mode.encode(), data, path)
    return b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), path, len(data), data)


def _quoted(path: bytes) -> bytes:
    return b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'
