"""Runs an agent that is a program: prompt on standard input, one JSON event a line on its output.

Whatever the program does, the call returns within its limits, the error pipe is read too, and
nothing that it started is left: its process group is ended, and so is what left the group and still
carries the mark in its environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import uuid4

from app.domain.redaction import redact
from app.errors import AgentError

Event = Mapping[str, Any]
"""A line's JSON object. It has a `type`; all of it is untrusted."""

KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
"""What a program of somebody else gets of our environment: nothing that says who we are."""

START_ATTEMPTS = 2
"""How often a program is started that says nothing at all: once more, then it has failed."""

_MARK = "MERGEWARD_PROGRAM"
_PROCESSES = Path("/proc")
_CHUNK = 256 * 1024
_DRAIN_S = 1.0
_POLL_S = 0.02
_SWEEPS = 50


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Seconds and bytes. No event at all after `start_s`: the program is taken for dead. After its
    final event, or when it closes its output, it has `grace_s` to end; between the polite signal
    and the other one pass `stop_s`. A longer line than `line_bytes` is no event; of the error
    output the last `error_bytes` are kept."""

    total_s: float = 25 * 60.0
    start_s: float = 60.0
    grace_s: float = 5.0
    stop_s: float = 1.0
    line_bytes: int = 64 * 1024 * 1024
    error_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. `environment` is all it gets besides `KEPT_VARIABLES`; `is_final` knows the
    event after which nothing is to come."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    prompt: bytes = field(default=b"", repr=False)
    is_final: Callable[[Event], bool] = lambda _: False


class ProgramEnd(StrEnum):
    """How it ended. DONE: by itself with exit code 0, or we ended it after its final event."""

    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """`exit_code` is None where we ended it, negative for a signal. `error_text` is the end of
    what it wrote to its error output, without secrets; `skipped` counts lines that were no event.
    """

    end: ProgramEnd
    exit_code: int | None
    error_text: str
    events: int
    skipped: int


async def run_program(
    program: Program,
    on_event: Callable[[Event], Awaitable[None]],
    limits: ProgramLimits | None = None,
) -> ProgramResult:
    """Run it to its end, and once more if it never says anything.

    Raises AgentError when it cannot be started, and what `on_event` raises. A cancellation ends it
    before it is passed on.
    """
    chosen = limits or ProgramLimits()
    for _ in range(START_ATTEMPTS):
        result = await _Run(program, on_event, chosen).run()
        if result.end is not ProgramEnd.SILENT:
            break
    return result


class _Run:
    """One process."""

    def __init__(
        self,
        program: Program,
        on_event: Callable[[Event], Awaitable[None]],
        limits: ProgramLimits,
    ) -> None:
        self._program = program
        self._on_event = on_event
        self._limits = limits
        self._mark = uuid4().hex
        self._first, self._final = asyncio.Event(), asyncio.Event()
        self._errors = b""
        self._events = self._skipped = 0

    async def run(self) -> ProgramResult:
        process = await self._start()
        out = asyncio.create_task(self._read_events(process.stdout))
        helpers = [
            asyncio.create_task(self._keep_errors(process.stderr)),
            asyncio.create_task(self._write_prompt(process.stdin)),
        ]
        try:
            end = await self._until_over(process, out)
            code = process.returncode
        finally:
            # What was started must end, also if this task is cancelled once more meanwhile.
            await _uninterrupted(self._end(process))
            await _uninterrupted(_stopped(out, *helpers))
        if _is_broken(out):
            await out
        return ProgramResult(
            end or self._judged(code),
            code,
            redact(self._errors.decode("utf-8", "replace")),
            self._events,
            self._skipped,
        )

    async def _start(self) -> asyncio.subprocess.Process:
        program = self._program
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        environment = {**kept, "HOME": str(program.folder), **program.environment}
        try:
            return await asyncio.create_subprocess_exec(
                *program.command,
                cwd=program.folder,
                env={**environment, _MARK: self._mark},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise AgentError(f"{program.command[0]!r} could not be started: {error}") from None

    async def _until_over(
        self, process: asyncio.subprocess.Process, out: asyncio.Task[None]
    ) -> ProgramEnd | None:
        """Wait until there is nothing more to wait for. None: by the program's own doing."""
        limits = self._limits
        exited = asyncio.create_task(_exit_of(process))
        first = asyncio.create_task(self._first.wait())
        final = asyncio.create_task(self._final.wait())
        try:
            async with asyncio.timeout(limits.total_s):
                if not await _one_of(limits.start_s, first, exited, out):
                    return ProgramEnd.SILENT
                await _one_of(None, final, exited, out)
                if not _is_broken(out):
                    await _one_of(limits.grace_s, exited)
                # What it wrote is in the pipe; nobody waits for others who hold that open.
                await _one_of(_DRAIN_S, out)
        except TimeoutError:
            return ProgramEnd.TIMED_OUT
        finally:
            await _stopped(exited, first, final)
        return None

    def _judged(self, code: int | None) -> ProgramEnd:
        good = self._final.is_set() if code is None else code == 0
        return ProgramEnd.DONE if good else ProgramEnd.FAILED

    async def _read_events(self, stream: asyncio.StreamReader | None) -> None:
        """Every line of the output, of any length, without the stream's own limit."""
        assert stream is not None
        parts: list[bytes] = []
        size = 0
        while chunk := await stream.read(_CHUNK):
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                whole = size <= self._limits.line_bytes
                await self._take(b"".join((*parts, line)) if whole else b"")
                parts, size = [], 0
            size += len(rest)
            if size <= self._limits.line_bytes:
                parts.append(rest)
            else:
                parts = []
        if parts and size:
            await self._take(b"".join(parts))

    async def _take(self, line: bytes) -> None:
        event = _event(line)
        if event is None:
            self._skipped += 1
            return
        self._events += 1
        self._first.set()
        await self._on_event(event)
        if self._program.is_final(event):
            self._final.set()

    async def _keep_errors(self, stream: asyncio.StreamReader | None) -> None:
        assert stream is not None
        while chunk := await stream.read(_CHUNK):
            self._errors = (self._errors + chunk)[-self._limits.error_bytes :]

    async def _write_prompt(self, stream: asyncio.StreamWriter | None) -> None:
        """All of it, then the end: a program that reads to the end must not wait for ever."""
        assert stream is not None
        with suppress(ConnectionError):
            stream.write(self._program.prompt)
            await stream.drain()
        stream.close()

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Politely, then not; the whole group, and who left it."""
        if _signalled(process.pid, signal.SIGTERM):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.stop_s):
                    await _exit_of(process)
            _signalled(process.pid, signal.SIGKILL)
        mark = f"{_MARK}={self._mark}".encode()
        await asyncio.to_thread(end_marked, mark, group=process.pid)
        await _exit_of(process)


def _event(line: bytes) -> Event | None:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("type"), str) else None


def end_marked(mark: bytes, group: int | None = None) -> None:
    """End every process whose environment holds `NAME=value`, wherever it went, and everyone in
    the process group; wait until they are gone (Linux alone tells).

    That is a broom and no sandbox: a program that takes pains to hide runs on.
    """
    known: set[Path] = set()
    for _ in range(_SWEEPS):
        known = {
            folder
            for folder in _PROCESSES.glob("[0-9]*")
            if (folder in known and _lives(folder)) or _belongs(folder, mark, group)
        }
        if not known:
            return
        for folder in known:
            with suppress(OSError):
                os.kill(int(folder.name), signal.SIGKILL)
        time.sleep(_POLL_S)


def _belongs(folder: Path, mark: bytes, group: int | None) -> bool:
    """By its environment, which one that is about to end no longer holds, or by its group, which it
    keeps to the last."""
    with suppress(OSError):
        if mark in (folder / "environ").read_bytes().split(b"\0"):
            return True
    return group is not None and _lives(folder, group)


def _lives(folder: Path, group: int | None = None) -> bool:
    """Whether there is more of a process than the exit code its parent has yet to ask for. With a
    group: and whether it is of that."""
    with suppress(OSError, ValueError):
        # The name stands in brackets and may hold anything, brackets too.
        state, _, its_group = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:3]
        return state not in {b"Z", b"X"} and group in {None, int(its_group)}
    return False


def _signalled(group: int, number: signal.Signals) -> bool:
    """Whether there was still somebody in the group."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _exit_of(process: asyncio.subprocess.Process) -> None:
    """Wait for the process alone: its own `wait` also waits for whoever else holds its pipes."""
    while process.returncode is None:  # noqa: ASYNC110  # nothing else tells it
        await asyncio.sleep(_POLL_S)


def _is_broken(task: asyncio.Task[Any]) -> bool:
    """Whether it has failed: what takes the events did."""
    return task.done() and not task.cancelled() and task.exception() is not None


async def _one_of(within_s: float | None, *tasks: asyncio.Task[Any]) -> bool:
    """Whether one of the tasks was over in time."""
    done, _ = await asyncio.wait(tasks, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)


async def _stopped(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Do `work` to its end; a cancellation meanwhile is passed on after it."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
