"""Agents that are programs (app/agents/program.py), played by small Python programs."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import pytest

from app.agents.program import (
    KEPT_VARIABLES,
    Event,
    Program,
    ProgramEnd,
    ProgramLimits,
    ProgramResult,
    run_program,
)
from app.errors import AgentError

SAY = (
    "import json,sys,time,os\ndef say(t): print(json.dumps({'type':'text','text':t}),flush=True)\n"
)
FINAL = "print(json.dumps({'type':'end'}),flush=True)\n"
QUICK = ProgramLimits(total_s=10, start_s=5, grace_s=0.3, stop_s=0.3)


def program(code: str, folder: Path, **more: object) -> Program:
    command = [sys.executable, "-c", SAY + code]
    return Program(command, folder, is_final=lambda event: event["type"] == "end", **more)  # type: ignore[arg-type]


async def run(
    code: str, folder: Path, limits: ProgramLimits = QUICK, **more: object
) -> tuple[ProgramResult, list[str]]:
    said: list[str] = []

    async def keep(event: Event) -> None:
        said.append(event.get("text", event["type"]))

    return await run_program(program(code, folder, **more), keep, limits), said


def left_in(folder: Path) -> list[str]:
    """Processes that still work in the folder."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink() == folder:
                found.append(link.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("code", "end", "said"),
    [
        pytest.param("say('a')", ProgramEnd.DONE, ["a"], id="says-and-ends"),
        pytest.param("", ProgramEnd.DONE, [], id="ends-without-a-word"),
        pytest.param("say('a'); sys.exit(3)", ProgramEnd.FAILED, ["a"], id="fails"),
        pytest.param("say('a'); os.kill(os.getpid(), 9)", ProgramEnd.FAILED, ["a"], id="killed"),
        pytest.param(
            "say('a')\n" + FINAL + "time.sleep(99)", ProgramEnd.DONE, ["a", "end"], id="lives-on"
        ),
        pytest.param(
            "import signal; signal.signal(15, signal.SIG_IGN)\n" + FINAL + "time.sleep(99)",
            ProgramEnd.DONE,
            ["end"],
            id="lives-on-and-will-not-hear",
        ),
        pytest.param(
            "say('a'); os.close(1); time.sleep(99)", ProgramEnd.FAILED, ["a"], id="closes-output"
        ),
        pytest.param(
            "os.write(1, b'\\xff\\xfe\\n\\0\\0\\n{\"type\": 1}\\n'); say('a')",
            ProgramEnd.DONE,
            ["a"],
            id="bytes-that-are-no-text",
        ),
        pytest.param(
            'sys.stdout.write(\'{"type":"text","text":"z"}\')',
            ProgramEnd.DONE,
            ["z"],
            id="no-line-end",
        ),
        pytest.param("print('{\"a\":' * 9000); say('a')", ProgramEnd.DONE, ["a"], id="nested"),
        pytest.param("os.close(0); say('a')", ProgramEnd.DONE, ["a"], id="never-reads"),
        pytest.param(
            "for n in range(3): say(str(n)); time.sleep(0.1)",
            ProgramEnd.DONE,
            ["0", "1", "2"],
            id="in-order",
        ),
    ],
)
async def test_how_it_ends(tmp_path: Path, code: str, end: ProgramEnd, said: list[str]) -> None:
    """Every event that was said arrives, in order; nothing is left running."""
    result, heard = await run(code, tmp_path, prompt=b"p" * 300_000)
    assert (result.end, heard) == (end, said)
    assert left_in(tmp_path) == []


async def test_the_prompt_is_read_to_its_end(tmp_path: Path) -> None:
    """Large, with every byte, and then closed."""
    prompt = bytes(range(256)) * 4_000
    code = (
        "data = sys.stdin.buffer.read(); say(str(len(data)) + str(data[:256] == bytes(range(256))))"
    )
    _, heard = await run(code, tmp_path, prompt=prompt)
    assert heard == ["1024000True"]


async def test_an_endless_line_is_skipped(tmp_path: Path) -> None:
    """It costs no more memory than a line may have, and what follows is heard."""
    code = "sys.stdout.write('{' + 'x' * 3_000_000 + '\\n'); say('after')"
    result, heard = await run(code, tmp_path, ProgramLimits(line_bytes=1_000_000))
    assert (heard, result.skipped) == (["after"], 1)


@pytest.mark.parametrize(
    ("code", "limits", "end", "starts"),
    [
        pytest.param(
            "time.sleep(99)", ProgramLimits(start_s=0.4), ProgramEnd.SILENT, 2, id="never-a-word"
        ),
        pytest.param(
            "print('INFO waiting', flush=True); time.sleep(99)",
            ProgramLimits(start_s=0.4),
            ProgramEnd.SILENT,
            2,
            id="words-that-are-no-event",
        ),
        pytest.param(
            "say('a'); time.sleep(99)",
            ProgramLimits(start_s=5, total_s=0.6),
            ProgramEnd.TIMED_OUT,
            1,
            id="silent-later",
        ),
    ],
)
async def test_limits(
    tmp_path: Path, code: str, limits: ProgramLimits, end: ProgramEnd, starts: int
) -> None:
    """A program that says nothing is started once more; one that has spoken is not."""
    counted = "open('starts', 'a').write('x')\n" + code
    began = time.monotonic()
    result, _ = await run(counted, tmp_path, limits)
    assert (result.end, result.exit_code) == (end, None)
    assert (tmp_path / "starts").read_text() == "x" * starts
    assert time.monotonic() - began < 5
    assert left_in(tmp_path) == []


@pytest.mark.parametrize(
    "hides",
    [
        pytest.param("", id="same-group"),
        pytest.param("start_new_session=True", id="own-session"),
    ],
)
async def test_what_it_started_is_ended(tmp_path: Path, hides: str) -> None:
    """Also what left the process group, and though it holds the output open."""
    code = (
        "import subprocess\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)'], {hides})\n"
        "say('a')"
    )
    result, heard = await run(code, tmp_path)
    assert (result.end, heard) == (ProgramEnd.DONE, ["a"])
    assert left_in(tmp_path) == []


async def test_the_error_output_is_kept_and_masked(tmp_path: Path) -> None:
    """Its end, without secrets."""
    secret = "ghs_" + "a" * 36
    code = f"sys.stderr.write('x' * 200_000 + ' token {secret} end'); say('a')"
    result, _ = await run(code, tmp_path)
    assert result.error_text.endswith("end")
    assert len(result.error_text) <= 64 * 1024
    assert secret not in result.error_text


async def test_the_environment_is_what_was_given(tmp_path: Path) -> None:
    """Nothing of ours but what every program needs."""
    _, heard = await run("say(json.dumps(sorted(os.environ)))", tmp_path, environment={"A": "b"})
    allowed = {"A", "HOME", "LC_CTYPE", "MERGEWARD_PROGRAM", *KEPT_VARIABLES}
    assert {"A", "PATH"} <= set(json.loads(heard[0])) <= allowed


async def test_a_cancellation_ends_it(tmp_path: Path) -> None:
    """Within two seconds, and also when the program will not hear."""
    code = "import signal; signal.signal(15, signal.SIG_IGN); say('a'); time.sleep(99)"
    heard = asyncio.Event()

    async def keep(_: Event) -> None:
        heard.set()

    running = asyncio.create_task(run_program(program(code, tmp_path), keep))
    await asyncio.wait_for(heard.wait(), 10)
    began = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - began < 2
    assert left_in(tmp_path) == []


async def test_an_error_of_the_listener_ends_it(tmp_path: Path) -> None:
    """At once, and it is the listener's error that is raised."""

    async def fails(_: Event) -> None:
        raise LookupError("the job is lost")

    began = time.monotonic()
    with pytest.raises(LookupError, match="the job is lost"):
        await run_program(program("say('a'); time.sleep(99)", tmp_path), fails)
    assert time.monotonic() - began < 4
    assert left_in(tmp_path) == []


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """The message names it."""
    with pytest.raises(AgentError, match="'/no/such/agent' could not be started"):
        await run_program(Program(["/no/such/agent"], tmp_path), _nobody)


async def _nobody(_: Event) -> None:
    return None
