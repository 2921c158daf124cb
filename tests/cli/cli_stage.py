"""A person's repository, a scripted model, and the command as a process or in this one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.sandbox.model import ModelServer, Scenario
from tests.git.repos import git

ROOT = Path(__file__).parents[2]
KEY = "key-of-the-scripted-model"
DANGEROUS = "import subprocess\n\nsubprocess.run(command, shell=True)\n"
DOUBTFUL = "get(url, verify=False)\n"
HARMLESS = "answer = 42\n"


@dataclass(frozen=True)
class Checkout:
    """A repository with a worktree: `main` with a README, and the branch `topic` checked out."""

    path: Path

    @classmethod
    def create(cls, path: Path, *, default: str = "main") -> Checkout:
        path.mkdir(parents=True)
        git("init", "--quiet", f"--initial-branch={default}", ".", cwd=path)
        checkout = cls(path)
        checkout.commit({"README.md": "Notes\n"}, "Begin")
        git("checkout", "--quiet", "-b", "topic", cwd=path)
        return checkout

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(text, encoding="utf-8")

    def commit(self, files: Mapping[str, str], message: str = "Change") -> str:
        """Commit these files on what is checked out. Returns the commit."""
        self.write(files)
        git("add", "--all", cwd=self.path)
        git("commit", "--quiet", "--message", message, cwd=self.path)
        return git("rev-parse", "HEAD", cwd=self.path).decode().strip()


@contextmanager
def scripted_model(scenario: Scenario | str) -> Iterator[str]:
    """The model server in a thread of its own; gives its address."""
    ready = threading.Event()
    found: list[str] = []
    ends: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        async with ModelServer(scenario, api_key=KEY) as model:
            end = asyncio.Event()
            ends.append((asyncio.get_running_loop(), end))
            found.append(model.url)
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield found[0]
    finally:
        loop, end = ends[0]
        loop.call_soon_threadsafe(end.set)
        thread.join(30)


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """What a process of ours gets: nothing of the caller's settings."""
    own = ("MERGEWARD_", "ANTHROPIC_", "OPENAI_", "PYTHON", "COLUMNS", "TERM")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return {**kept, "COLUMNS": "100", **more}


def mergeward(
    *arguments: str, variables: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run the command as a person does, without a terminal and with these settings alone."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env={**environment(variables or {}), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def command(*arguments: str) -> list[str]:
    """The argument list of one call."""
    return [sys.executable, "-m", "app.cli", *arguments]
