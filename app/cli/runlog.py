"""`mergeward log`: what a run did, from its log."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from app.cli.output import one_line
from app.errors import UserError
from app.settings import load_settings
from app.telemetry.runlog import FILE_NAME, read_log

POLL_S = 0.3
LAST = "ended"
"""The kind of the line after which nothing follows."""

_SHOWN = 400
_FIRST = ("session", "reviewer", "tool", "model", "finding", "ref")


def show(run: str, *, as_json: bool, follow: bool, out: TextIO = sys.stdout) -> None:
    """Print the log of a run. Raises UserError naming the folder when there is none."""
    folder = load_settings().data_dir / "runs"
    path = folder / run / FILE_NAME
    if not run.isdigit() or not (path.is_file() or (follow and path.parent.is_dir())):
        known = sorted(
            (int(entry.name) for entry in folder.glob("[0-9]*") if (entry / FILE_NAME).is_file()),
            reverse=True,
        )
        newest = ", ".join(map(str, known[:5])) or "none"
        raise UserError(f"There is no log of run {run!r} in {folder}. The newest runs: {newest}.")
    for line in _lines(path, follow=follow):
        out.write((json.dumps(line, ensure_ascii=False) if as_json else told(line)) + "\n")
        out.flush()


def _lines(path: Path, *, follow: bool) -> Iterator[Mapping[str, Any]]:
    """What stands in the log, and with `follow` what comes, until the run has ended."""
    place = 0
    while True:
        over = False
        if path.is_file():
            for line, after in read_log(path, place):
                place, over = after, line.get("kind") == LAST
                yield line
        if over or not follow:
            return
        time.sleep(POLL_S)


def told(line: Mapping[str, Any]) -> str:
    """A line for a person: time, what happened, to whom, and the rest."""
    rest = {name: value for name, value in line.items() if name not in ("at", "kind")}
    first = [str(rest.pop(name)) for name in _FIRST if rest.get(name) is not None]
    more = [f"{name}={_short(value)}" for name, value in rest.items() if value not in ("", None)]
    at = str(line.get("at", ""))[11:23]
    kind = one_line(str(line.get("kind", "?"))).ljust(16)
    return f"{one_line(at)} {kind} {one_line(' '.join((*first, *more)))}".rstrip()


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
