"""The log of one run: a JSON object a line, in the run's folder, and its reader.

What is written is flushed every 100 lines or 50 ms, whole lines at a time, so a process that is
killed leaves no half of one. Writing never stops a review: a disk that fails or is full ends the
log, not the run.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from app.logs import get_logger, redact

FILE_NAME = "run.jsonl"
FLUSH_LINES = 100
FLUSH_S = 0.05
MOST_BYTES = 64 * 1024 * 1024
"""Of one log, in one process: a run that says more is not read by anybody."""

_CHUNK = 1 << 16
log = get_logger(__name__)


class RunLog:
    """Appends to the log of one run. For one event loop; close it, or use `with`.

    Every text is cleaned of credentials. A log that goes on after a restart goes on in its file.
    """

    def __init__(
        self, path: Path, now: Callable[[], datetime], *, most_bytes: int = MOST_BYTES
    ) -> None:
        self._path = path
        self._now = now
        self._left = most_bytes
        self._lines: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._file: int | None = None
        self._over = False

    def note(self, kind: str, **fields: Any) -> None:
        """Add a line. `fields` are JSON values; their texts may be untrusted."""
        if self._over:
            return
        line = {"at": self._now().isoformat(), "kind": kind, **_clean(fields)}
        self._lines.append(json.dumps(line, ensure_ascii=True).encode() + b"\n")
        if len(self._lines) >= FLUSH_LINES:
            self.flush()
        elif self._timer is None:
            self._timer = _later(self.flush)

    def flush(self) -> None:
        """Write what there is. After an error nothing more is written, and the log says so once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        data, self._lines = b"".join(self._lines), []
        if not data or self._over:
            return
        if len(data) > self._left:
            self._over = True
            data = b'{"kind":"log_full"}\n'
        self._left -= len(data)
        try:
            self._write(data)
        except OSError as error:
            self._over = True
            log.warning("a run's log can't be written", path=str(self._path), error=str(error))

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(self._path, flags, 0o600)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                data = b"\n" + data  # An earlier try ended amid a line: ours is not part of it.
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]

    def close(self) -> None:
        self.flush()
        self._over = True
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_log(path: Path, start: int = 0) -> Iterator[tuple[Mapping[str, Any], int]]:
    """The lines of a log from byte `start` on, each with the place where the next one begins.

    Lines may be of any length. A last line without its end is not there yet; what is no JSON object
    is passed over. Raises OSError when the file can't be read.
    """
    with path.open("rb") as file:
        file.seek(start)
        parts: list[bytes] = []
        place = start
        while chunk := file.read(_CHUNK):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                line = b"".join((*parts, piece))
                parts = []
                place += len(line) + 1
                found = _object(line)
                if found is not None:
                    yield found, place
            parts.append(rest)


def _object(line: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _later(flush: Callable[[], None]) -> asyncio.TimerHandle | None:
    try:
        return asyncio.get_running_loop().call_later(FLUSH_S, flush)
    except RuntimeError:
        flush()
        return None


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, Sequence | frozenset | set):
        return [_clean(item) for item in value]
    return value if isinstance(value, int | float | bool) or value is None else redact(str(value))
