"""Runs the repository's own check in a checkout.

The command comes from the policy on the default branch, never from the change. It is a list of
arguments, gets an environment without any of our secrets, no terminal, and a limit of time; its
whole process group ends with it, and so does what left the group and still carries its mark.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from app.agents.program import KEPT_VARIABLES, end_marked
from app.domain.redaction import redact

TIMEOUT_S = 600.0
OUTPUT_CHARS = 8_000
"""The end of the output is what a model is told; test runners put the failure there."""

_LAST_WORDS_S = 1.0
_CHUNK = 64 * 1024
_KEPT_BYTES = 4 * OUTPUT_CHARS
"""A character has at most four bytes."""

_MARK = "MERGEWARD_CHECK"


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether the check passed, and the end of what it printed (untrusted)."""

    passed: bool
    output: str


class _Tail(asyncio.Protocol):
    """Keeps the end of what is written to a pipe; the rest is read and forgotten."""

    def __init__(self) -> None:
        self.kept = b""
        self.closed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.kept = (self.kept + data)[-_KEPT_BYTES:]

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


async def verify(command: Sequence[str], folder: Path, *, timeout_s: float = TIMEOUT_S) -> Verified:
    """Run the check. No command is a check that passes; one that can't be started is one that
    fails and says why.

    What it leaves running is ended. That is a broom and no sandbox: a program that takes pains to
    hide runs on, as the user that we are.
    """
    if not command:
        return Verified(True, "")
    mark = f"{_MARK}={uuid4().hex}"
    async with _pipe() as (tail, write_end):
        try:
            code = await _run(command, folder, mark, write_end, timeout_s)
        except TimeoutError:
            return Verified(False, f"The check took longer than {timeout_s:.0f} s.")
        except (OSError, ValueError) as error:
            return Verified(False, f"{command[0]!r} could not be started: {error}")
        finally:
            await asyncio.to_thread(end_marked, mark.encode())
        # Whoever hid from that may hold the pipe open: nobody waits for them.
        with suppress(TimeoutError):
            await asyncio.wait_for(tail.closed.wait(), _LAST_WORDS_S)
    return Verified(code == 0, redact(tail.kept.decode("utf-8", "replace"))[-OUTPUT_CHARS:])


@asynccontextmanager
async def _pipe() -> AsyncIterator[tuple[_Tail, int]]:
    """Where output is collected, and the end to write to; whoever is given that closes it."""
    read_end, write_end = os.pipe()
    loop = asyncio.get_running_loop()
    transport, tail = await loop.connect_read_pipe(_Tail, os.fdopen(read_end, "rb", 0))
    try:
        yield tail, write_end
    finally:
        transport.close()


async def _run(
    command: Sequence[str], folder: Path, mark: str, write_end: int, timeout_s: float
) -> int:
    """The exit code of the check, whose process group has ended."""
    name, _, value = mark.partition("=")
    kept = {key: os.environ[key] for key in KEPT_VARIABLES if key in os.environ}
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env={**kept, "HOME": str(folder), "CI": "true", name: value},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=write_end,
            stderr=write_end,
            start_new_session=True,
        )
    finally:
        os.close(write_end)
    try:
        return await asyncio.wait_for(process.wait(), timeout_s)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
