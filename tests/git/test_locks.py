"""Locks among tasks, threads and processes (app/git/locks.py)."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.git.locks import Hold, alone, is_held, take, to_the_end
from tests.git.repos import ENVIRONMENT

HOLDER = """
import sys, time
from pathlib import Path
from app.git.locks import Hold
hold = Hold(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


async def test_one_at_a_time_whoever_asks(tmp_path: Path) -> None:
    """Tasks of one loop and loops of several threads exclude each other."""
    lock, inside, most = tmp_path / "lock", 0, 0

    async def work() -> None:
        nonlocal inside, most
        async with alone(lock):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.005)
            inside -= 1

    async def several() -> None:
        await asyncio.gather(*(work() for _ in range(4)))

    threads = [threading.Thread(target=lambda: asyncio.run(several())) for _ in range(2)]
    for thread in threads:
        thread.start()
    await several()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert (inside, most) == (0, 1)


async def test_waiting_can_be_given_up(tmp_path: Path) -> None:
    """Whoever waits in vain leaves nothing locked."""
    async with alone(tmp_path / "lock"):
        waiting = asyncio.create_task(alone(tmp_path / "lock").__aenter__())
        await asyncio.sleep(0.03)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(5), alone(tmp_path / "lock"):
        pass


async def test_a_lock_file_may_be_removed_by_who_has_it(tmp_path: Path) -> None:
    """Who waited for the removed file does not take it for the lock that others use."""
    lock, order = tmp_path / "lock", []

    async def wait(name: str) -> None:
        async with alone(lock):
            order.append(name)
            assert take(lock) is None

    async with alone(lock):
        waiting = [asyncio.create_task(wait(name)) for name in "ab"]
        await asyncio.sleep(0.03)
        lock.unlink()
    await asyncio.gather(*waiting)
    assert sorted(order) == ["a", "b"]


def test_a_lock_whose_file_was_removed_is_no_lock(tmp_path: Path) -> None:
    """Many threads take, remove and give back one lock file: never two of them have it."""
    lock, inside, most, got = tmp_path / "lock", 0, 0, 0
    before = sys.getswitchinterval()

    def work() -> None:
        nonlocal inside, most, got
        for _ in range(400):
            handle = take(lock)
            if handle is not None:
                inside, got = inside + 1, got + 1
                most = max(most, inside)
                time.sleep(0)
                inside -= 1
                lock.unlink()  # which frees it for those who look now
                os.close(handle)

    threads = [threading.Thread(target=work) for _ in range(8)]
    try:
        sys.setswitchinterval(1e-6)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert got
    assert most == 1


def test_a_hold_lasts_as_long_as_somebody_has_it(tmp_path: Path) -> None:
    """Any number hold a file at once; the last one that lets go frees it."""
    file = tmp_path / "in-use"
    assert not is_held(file)
    first, second = Hold(file), Hold(file)
    assert is_held(file)
    del first
    gc.collect()
    assert is_held(file)
    del second
    gc.collect()
    assert not is_held(file)


def test_the_time_of_a_file_is_when_it_was_last_held(tmp_path: Path) -> None:
    """Also when that began long ago."""
    file = tmp_path / "in-use"
    hold = Hold(file)
    os.utime(file, (1, 1))
    del hold
    gc.collect()
    assert file.stat().st_mtime > 1_000_000


def test_a_dead_process_holds_nothing(tmp_path: Path) -> None:
    """The kernel lets go for who can't."""
    file = tmp_path / "in-use"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(file)], env=ENVIRONMENT, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert is_held(file)
        process.kill()
    assert not is_held(file)


async def test_work_is_ended_before_a_cancellation_goes_on() -> None:
    """What runs in a thread can't be called back, so it is waited for."""
    done = threading.Event()
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow() -> None:
        loop.call_soon_threadsafe(began.set)
        done.wait(5)

    task = asyncio.create_task(to_the_end(asyncio.to_thread(slow)))
    await began.wait()
    task.cancel()
    await asyncio.sleep(0.02)
    assert not task.done()
    done.set()
    with pytest.raises(asyncio.CancelledError):
        await task
