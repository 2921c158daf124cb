"""Runs one analyzer in a folder: no shell, no environment of ours, bounded in time and space."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.logs import redact

_LAST_WORDS_S = 2.0


@dataclass(frozen=True, slots=True)
class Caps:
    """Seconds, and bytes of output and of memory (on Linux, from a moment after the start). A
    plugin has 2 minutes for all it does."""

    seconds: float = 45.0
    output: int = 8 * 1024 * 1024
    memory: int = 1024 * 1024 * 1024


class AnalyzerFailed(Exception):
    """It gave no result. The message is for logs and holds no secret."""


def program_path(program: str) -> str | None:
    """Where it is installed: beside our interpreter, or on PATH. None: it is not."""
    beside = Path(sys.executable).with_name(program)
    if beside.is_file() and os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which(program)
    return str(Path(found).absolute()) if found else None


async def output_of(
    command: Sequence[str], folder: Path, exit_codes: frozenset[int], caps: Caps
) -> bytes:
    """What it printed. Raises AnalyzerFailed. Nothing that it started outlives the call."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=_environment(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        if hasattr(resource, "prlimit"):
            with suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (caps.memory, caps.memory))
        async with asyncio.timeout(caps.seconds):
            out, err = await asyncio.gather(
                *(_kept(stream, caps.output, process) for stream in _pipes(process))
            )
            code = await process.wait()
    except TimeoutError:
        raise AnalyzerFailed(f"not finished within {caps.seconds:g} s") from None
    finally:
        await _end_wholly(process)
    if max(len(out), len(err)) > caps.output:
        raise AnalyzerFailed(f"printed over {caps.output:,} bytes")
    if code not in exit_codes:
        words = redact(err.decode("utf-8", "replace")).strip()[-300:]
        raise AnalyzerFailed(f"exit code {code}: {words}")
    return out


def _environment(folder: Path) -> Mapping[str, str]:
    """All that it gets: nothing of ours but where programs are."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
    }


def _pipes(process: asyncio.subprocess.Process) -> tuple[asyncio.StreamReader, ...]:
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdout, process.stderr


async def _kept(
    stream: asyncio.StreamReader, most: int, process: asyncio.subprocess.Process
) -> bytes:
    """What was printed. Beyond `most` bytes the process is ended, and the rest thrown away."""
    read = bytearray()
    while chunk := await stream.read(64 * 1024):
        if len(read) <= most:
            read += chunk
        if len(read) > most:
            _end(process)
    return bytes(read)


async def _end_wholly(process: asyncio.subprocess.Process) -> None:
    """End it and hear of it: asyncio tells of an end only when the pipes were read to theirs, which
    something that left the group could hold open."""
    _end(process)
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WORDS_S):
            for stream in _pipes(process):
                while await stream.read(64 * 1024):
                    pass
            await process.wait()


def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
