"""`process`: a program that plays the agent, run as every agent that is a program."""

from __future__ import annotations

import shlex
import time
from contextlib import suppress
from pathlib import Path

from app.agents.program import Event, Program, ProgramEnd, ProgramLimits, run_program
from tests.adapters.case import Case, only_knows

LATE = {ProgramEnd.TIMED_OUT, ProgramEnd.SILENT}
RESULTS = {"ok": {ProgramEnd.DONE}, "failed": {ProgramEnd.FAILED}, "timed out": LATE}
LIMITS = {"total_s": "total_s", "silence_s": "start_s", "grace_after_final_event_s": "grace_s"}


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(
        case.expect,
        *("events", "text_events", "texts", "text_lengths", "result", "exit_code"),
        *("returns_within_s", "kept_error_text_max", "processes_left", "pid_in_file_is_gone"),
    )
    command = [*shlex.split(case.input["run_with"]), case.input["program"]]
    limits = {LIMITS[name]: value for name, value in case.input.get("limits", {}).items()}
    events: list[Event] = []

    async def keep(event: Event) -> None:
        events.append(event)

    began = time.monotonic()
    program = Program(command, tmp_path, is_final=_is_final)
    result = await run_program(program, keep, ProgramLimits(**limits))
    took = time.monotonic() - began
    texts = [event["part"]["text"] for event in events if event["type"] == "text"]
    expect = case.expect
    assert result.end in RESULTS[expect.get("result", "ok")]
    assert result.exit_code == expect.get("exit_code", result.exit_code)
    assert took <= expect["returns_within_s"]
    assert len(events) == expect.get("events", len(events))
    assert len(texts) == expect.get("text_events", len(texts))
    assert texts == expect.get("texts", texts)
    assert [len(text) for text in texts] == expect.get("text_lengths", [*map(len, texts)])
    assert len(result.error_text) <= expect.get("kept_error_text_max", len(result.error_text))
    left = [link for link in Path("/proc").glob("[0-9]*/cwd") if _leads_to(link, tmp_path)]
    assert len(left) == expect.get("processes_left", 0)
    if file := expect.get("pid_in_file_is_gone"):
        state = Path(f"/proc/{(tmp_path / file).read_text()}/stat")
        assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def _leads_to(link: Path, folder: Path) -> bool:
    with suppress(OSError):
        return link.readlink() == folder
    return False


def _is_final(event: Event) -> bool:
    return (event["type"], event.get("part", {}).get("reason")) == ("step_finish", "stop")
