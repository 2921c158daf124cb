"""The repository's own check: how it ends and what it leaves (fixer/verify.py)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from app.fixer.verify import OUTPUT_CHARS, verify

KEPT = {"PATH", "LANG", "LC_ALL", "TZ", "TMPDIR"}
SECRETS = ("ANTHROPIC_API_KEY", "MERGEWARD_DATABASE_URL", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY")


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that ended and waits for its parent does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


async def dies(pid: int) -> bool:
    for _ in range(100):
        if not is_alive(pid):
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("command", "passed", "says"),
    [
        pytest.param([], True, "", id="no-check"),
        pytest.param(["true"], True, "", id="passes"),
        pytest.param(["sh", "-c", "echo wrong; exit 3"], False, "wrong", id="fails"),
        pytest.param(["sh", "-c", "echo wrong >&2; exit 3"], False, "wrong", id="says-it-aside"),
        pytest.param(["sh", "-c", "kill -9 $$"], False, "", id="killed"),
        pytest.param(["no-such-program-here"], False, "could not be started", id="not-found"),
        pytest.param(["./README"], False, "could not be started", id="not-executable"),
        pytest.param(["sh", "-c", "read x && exit 0; exit 4"], False, "", id="asks"),
        pytest.param(["true", "; rm -rf /"], True, "", id="no-shell"),
    ],
)
async def test_a_check_passes_or_fails(
    tmp_path: Path, command: list[str], passed: bool, says: str
) -> None:
    """Exit code zero passes; everything else fails, with the check's own words."""
    (tmp_path / "README").write_text("no program")
    said = await verify(command, tmp_path)
    assert said.passed is passed
    assert says in said.output


async def test_the_check_runs_in_the_checkout(tmp_path: Path) -> None:
    """Its folder is the checkout, and it finds its programs where ours are."""
    said = await verify(["sh", "-c", "pwd; command -v git"], tmp_path)
    assert said.output.splitlines()[0] == str(tmp_path)
    assert said.passed


async def test_the_environment_holds_no_secret_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check runs what a model wrote: it sees the search path and nothing that opens a door."""
    for name in SECRETS:
        monkeypatch.setenv(name, "hunter2-hunter2")
    said = await verify([sys.executable, "-c", "import os; print(sorted(os.environ))"], tmp_path)
    assert said.passed
    names = set(eval(said.output))  # noqa: S307 - a list of names that the line above printed
    assert names <= {*KEPT, "HOME", "LC_CTYPE", "CI", "MERGEWARD_CHECK"}


async def test_a_secret_in_the_output_is_taken_out(tmp_path: Path) -> None:
    """What a check prints goes to a model: keys do not."""
    said = await verify(["echo", "key AKIAIOSFODNN7EXAMPLE here"], tmp_path)
    assert "AKIA" not in said.output


async def test_the_end_of_a_long_output_is_kept(tmp_path: Path) -> None:
    """Runners put the failure last; megabytes before it are neither kept nor waited for."""
    script = "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo THE FAILURE; exit 1"
    said = await verify(["sh", "-c", script], tmp_path)
    assert said.output.endswith("THE FAILURE\n")
    assert len(said.output) <= OUTPUT_CHARS


async def test_bytes_that_are_no_text_are_shown_somehow(tmp_path: Path) -> None:
    """A check may print anything."""
    said = await verify(["printf", "\\377\\376 ok"], tmp_path)
    assert said.output.endswith(" ok")


async def test_a_check_that_hangs_is_ended(tmp_path: Path) -> None:
    """After its time it and what it started are gone, and the model is told why."""
    script = "sleep 60 & echo $! > pid; wait"
    async with asyncio.timeout(20):
        said = await verify(["sh", "-c", script], tmp_path, timeout_s=0.5)
    assert (said.passed, "longer than" in said.output) == (False, True)
    assert await dies(int((tmp_path / "pid").read_text()))


async def test_what_it_leaves_running_is_ended(tmp_path: Path) -> None:
    """A server that a test forgot does not outlive the check, nor keep us waiting."""
    script = "sleep 60 & echo $! > pid; echo done"
    began = time.monotonic()
    said = await verify(["sh", "-c", script], tmp_path)
    assert (said.passed, said.output) == (True, "done\n")
    assert time.monotonic() - began < 10
    assert await dies(int((tmp_path / "pid").read_text()))


async def test_what_leaves_the_group_is_found_by_its_mark(tmp_path: Path) -> None:
    """A process in a session of its own is still the check's."""
    script = "setsid sleep 60 & echo $! > pid; echo done"
    said = await verify(["sh", "-c", script], tmp_path)
    assert (said.passed, said.output) == (True, "done\n")
    assert await dies(int((tmp_path / "pid").read_text()))


async def test_who_hides_keeps_nobody_waiting(tmp_path: Path) -> None:
    """One that hides and holds the output open: what was said until then counts."""
    script = "env -i PATH=$PATH setsid sleep 30 & echo $! > pid; sleep 0.2; echo done"
    began = time.monotonic()
    said = await verify(["sh", "-c", script], tmp_path)
    assert (said.passed, said.output) == (True, "done\n")
    assert time.monotonic() - began < 10
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


async def test_a_cancelled_check_ends_too(tmp_path: Path) -> None:
    """When the job is told to stop, nothing of the check goes on."""
    task = asyncio.create_task(verify(["sh", "-c", "echo $$ > pid; sleep 60"], tmp_path))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    task.cancel()
    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await dies(int((tmp_path / "pid").read_text()))
