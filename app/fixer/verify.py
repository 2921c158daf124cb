"""Runs the repository's own check in the fixer's checkout.

The command comes from the policy on the default branch, never from the change. It is a list of
arguments, gets an environment without any of our secrets, no terminal, and a limit of time; its
whole process group ends with it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.agents.redact import redact

TIMEOUT_S = 600.0
OUTPUT_CHARS = 8_000
"""The end of the output is what a model is told; test runners put the failure there."""

_CHUNK = 64 * 1024
_KEPT_BYTES = 4 * OUTPUT_CHARS
"""A character has at most four bytes."""

_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether the check passed, and the end of what it printed (untrusted)."""

    passed: bool
    output: str


async def verify(command: Sequence[str], folder: Path, *, timeout_s: float = TIMEOUT_S) -> Verified:
    """Run the check. No command is a check that passes; one that can't be started is one that
    fails and says why. Nothing that it started outlives it."""
    if not command:
        return Verified(True, "")
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env={**environment, "HOME": str(folder), "CI": "true"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return Verified(False, f"{command[0]!r} could not be started: {error}")
    assert process.stdout is not None
    reading = asyncio.create_task(_tail(process.stdout))
    try:
        code = await asyncio.wait_for(process.wait(), timeout_s)
    except TimeoutError:
        return Verified(False, f"The check took longer than {timeout_s:.0f} s.")
    finally:
        # What still runs of it (a server it left behind) holds the pipe: end it before reading on.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        output = await reading
    text = redact(output.decode("utf-8", "replace"))[-OUTPUT_CHARS:]
    return Verified(code == 0, text)


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """The end of everything the stream gives; the rest is read and forgotten."""
    kept = b""
    while chunk := await stream.read(_CHUNK):
        kept = (kept + chunk)[-_KEPT_BYTES:]
    return kept
