"""The log of a run (app/telemetry/runlog.py)."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from app.telemetry.runlog import FLUSH_LINES, FLUSH_S, RunLog, read_log

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def lines(path: Path) -> list[dict[str, Any]]:
    return [dict(line) for line, _ in read_log(path)]


def opened(path: Path, **more: Any) -> RunLog:
    return RunLog(path, lambda: NOW, **more)


async def test_a_line_is_there_after_fifty_milliseconds(tmp_path: Path) -> None:
    """Whoever looks on sees what happens, without a hundred lines having come together."""
    path = tmp_path / "runs" / "7" / "run.jsonl"
    with opened(path) as log:
        log.note("tool", session="security", tool="grep")
        assert not path.exists()
        await asyncio.sleep(FLUSH_S * 3)
        assert lines(path) == [
            {"at": NOW.isoformat(), "kind": "tool", "session": "security", "tool": "grep"}
        ]


async def test_a_hundred_lines_are_written_at_once(tmp_path: Path) -> None:
    """Nothing waits for a timer when much happens."""
    path = tmp_path / "run.jsonl"
    with opened(path) as log:
        for number in range(FLUSH_LINES):
            log.note("n", number=number)
        assert [line["number"] for line in lines(path)] == list(range(FLUSH_LINES))


def test_without_a_loop_each_line_is_written(tmp_path: Path) -> None:
    """Nobody would come back to write it."""
    path = tmp_path / "run.jsonl"
    log = opened(path)
    log.note("a")
    assert len(lines(path)) == 1
    log.close()


def test_a_second_process_goes_on_in_the_file(tmp_path: Path) -> None:
    """A restart loses nothing of what was."""
    for number in range(2):
        with opened(tmp_path / "run.jsonl") as log:
            log.note("n", number=number)
    assert [line["number"] for line in lines(tmp_path / "run.jsonl")] == [0, 1]


def test_credentials_are_taken_out_of_every_text(tmp_path: Path) -> None:
    """Wherever they stand: keys, values, lists."""
    secret = "ghp_" + "a" * 36
    with opened(tmp_path / "run.jsonl") as log:
        log.note("tool", arguments={secret: [f"x {secret}", {"deep": secret}]}, text=secret)
    assert secret not in (tmp_path / "run.jsonl").read_text()


@pytest.mark.parametrize("size", [1, 100_000, 5_000_000])
def test_lines_of_any_length(tmp_path: Path, size: int) -> None:
    """Written and read whole."""
    with opened(tmp_path / "run.jsonl") as log:
        log.note("text", text="é" * size)
        log.note("after")
    first, second = lines(tmp_path / "run.jsonl")
    assert len(first["text"]) == size
    assert second["kind"] == "after"


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20)), max_size=5))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, said: list[Any]) -> None:
    """Any text at all, line breaks and half characters too."""
    path = tmp_path_factory.mktemp("log") / "run.jsonl"
    with opened(path) as log:
        log.note("first")
        for fields in said:
            log.note("k", fields=fields)
    assert len(lines(path)) == len(said) + 1


def test_a_torn_last_line_is_not_there_yet(tmp_path: Path) -> None:
    """Whoever reads on begins where it begins, and gets it whole; what is no line of ours is
    passed over."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"kind":"a"}\nnot json\n[1]\n{"kind":"b"')
    found = list(read_log(path))
    assert [line["kind"] for line, _ in found] == ["a"]
    place = found[-1][1]
    with path.open("ab") as file:
        file.write(b'}\n{"kind":"c"}\n')
    assert [line["kind"] for line, _ in read_log(path, place)] == ["b", "c"]


def test_a_log_has_an_end(tmp_path: Path) -> None:
    """A run that says too much ends its log, and says so, once."""
    path = tmp_path / "run.jsonl"
    log = opened(path, most_bytes=500)
    for _ in range(100):
        log.note("n", text="x" * 100)
    log.close()
    kinds = [line["kind"] for line in lines(path)]
    assert kinds[-1] == "log_full"
    assert kinds.count("log_full") == 1
    assert path.stat().st_size < 1_000


def test_a_disk_that_fails_stops_no_review(tmp_path: Path) -> None:
    """The log ends; whoever writes to it notices nothing."""
    (tmp_path / "file").write_text("no folder")
    log = opened(tmp_path / "file" / "run.jsonl")
    with structlog.testing.capture_logs() as said:
        log.note("a")
        log.note("b")
        log.close()
    assert (tmp_path / "file").read_text() == "no folder"
    assert [line["event"] for line in said] == ["a run's log can't be written"]


def test_what_follows_a_torn_line_is_whole(tmp_path: Path) -> None:
    """A full disk or a crash may leave half a line; the next try's first line is not lost in it."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"kind":"a"}\n{"kind":"to')
    with opened(path) as log:
        log.note("b")
    assert [line["kind"] for line, _ in read_log(path)] == ["a", "b"]


def test_a_killed_process_leaves_whole_lines(tmp_path: Path) -> None:
    """However it ends, every line that is there is whole."""
    code = (
        "import sys, datetime; from pathlib import Path\n"
        "from app.telemetry.runlog import RunLog\n"
        "log = RunLog(Path(sys.argv[1]), lambda: datetime.datetime.now(datetime.UTC))\n"
        "print('on', flush=True)\n"
        "while True: log.note('n', text='x' * 3000)\n"
    )
    path = tmp_path / "run.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, cwd=Path.cwd()
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while not path.exists() or path.stat().st_size < 300_000:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    raw = path.read_bytes()
    assert raw.endswith(b"\n")
    assert all(json.loads(line)["kind"] == "n" for line in raw.splitlines())
