"""File locks among tasks, threads and processes of one machine. The kernel frees those of the dead.

Each opening of a file is a lock of its own, so two tasks of one thread exclude each other too.
They hold on a local disk; network file systems differ.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import weakref
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_POLL_S = 0.01


class Hold:
    """Says that a file's folder is in use, for as long as this object lives.

    It is never awaited, closed or passed on by hand: whoever can still read from a mirror has it,
    and a process that dies loses it. The file's time is when it was last held.
    """

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            os.utime(handle)
        except BaseException:
            os.close(handle)
            raise
        weakref.finalize(self, _let_go, handle)


def _let_go(handle: int) -> None:
    with suppress(OSError):
        os.utime(handle)
    os.close(handle)


def is_held(path: Path) -> bool:
    """Whether anybody holds the file; one that is not there is held by nobody."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(handle)
    finally:
        os.close(handle)


@asynccontextmanager
async def alone(path: Path) -> AsyncIterator[None]:
    """Wait for the lock file and keep it. Waiting takes no thread and can be cancelled.

    Who removes the file while having it frees the others: they see that it is another one by now.
    """
    while True:
        handle = take(path)
        if handle is not None:
            break
        await asyncio.sleep(_POLL_S)
    try:
        yield
    finally:
        os.close(handle)


def take(path: Path) -> int | None:
    """The lock file, made if need be, to be closed by the caller. None: somebody else has it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if _try_lock(handle) and _is_file_at(handle, path):
        return handle
    os.close(handle)
    return None


async def to_the_end(work: Coroutine[None, None, T]) -> T:
    """Await `work` to its end also when cancelled: a thread goes on, whoever waits for it.

    For what must not go on once a lock is given back.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_file_at(handle: int, path: Path) -> bool:
    mine = os.fstat(handle)
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)
