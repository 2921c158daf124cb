"""How many requests to GitHub a review takes: their log for first reviews and re-reviews.

    .venv/bin/python bench/calls.py

The whole product on loopback against the GitHub double: a small pull request with findings, one of
10 files and 400 lines, and each again after a push. Git's own requests and the token's are listed
too; the bounds are for REST and GraphQL. Exit code 1 if a bound is missed.
"""

# ruff: noqa: T201 - a program that prints
from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.cli.demo.report import Narrator
from app.cli.demo.stage import AUTHOR, REPOSITORY, Props, Stage
from app.sandbox.github.world import ApiCall
from app.sandbox.model import load_story_files

SMALL, MEDIUM, AGAIN = 10, 12, 8
"""Most requests of a first review, of a small and of a medium pull request, and of a re-review."""

REPAIRED = {"app/api/notes/search.py": b"def search_notes() -> list[str]:\n    return []\n"}
LINES = 40


def medium() -> dict[str, bytes]:
    """10 files, 400 lines."""
    code = b"".join(b"value_%02d = compute(%d)\n" % (line, line) for line in range(LINES))
    files = {f"app/part{at}.py": b"# %d\n%s" % (at, code) for at in range(9)}
    return {**load_story_files("story1"), **files}


async def measured(
    stage: Stage, branch: str, files: Mapping[str, bytes]
) -> tuple[Sequence[ApiCall], Sequence[ApiCall]]:
    """The requests of a first review, and of the one after a push that repairs what it found."""
    await stage.github.push(REPOSITORY, branch, files, author=AUTHOR)
    await stage.settle()
    begun = len(stage.github.calls)
    opened = await stage.github.open_pull_request(
        REPOSITORY, author=AUTHOR, head=branch, title="Search"
    )
    await stage.settle()
    pushed = len(stage.github.calls)
    await stage.github.push(REPOSITORY, branch, REPAIRED, author=AUTHOR)
    await stage.settle()
    if len(await stage.rounds_of(opened.number)) != 2:
        raise SystemExit(f"{branch}: not both reviews took place")
    return stage.github.calls[begun:pushed], stage.github.calls[pushed:]


async def everything() -> bool:
    kept = True
    voice = Narrator(Console(file=io.StringIO(), width=160))
    for branch, files, most in (
        ("search", load_story_files("story1"), SMALL),
        ("medium", medium(), MEDIUM),
    ):
        async with Stage(Props(), voice) as stage:
            first, again = await measured(stage, branch, files)
        kept &= _log(f"{branch}, first review", first, most)
        kept &= _log(f"{branch}, re-review", again, AGAIN)
    return kept


def _log(name: str, calls: Sequence[ApiCall], most: int) -> bool:
    asked = [call for call in calls if _counts(call)]
    kept = len(asked) <= most
    print(f"{name}: {len(asked)} requests (<= {most}: {'ok' if kept else 'MISSED'})")
    for call in calls:
        mark = " " if _counts(call) else "-"
        print(f"  {mark} {call.method:6}{call.status} {call.path}")
    return kept


def _counts(call: ApiCall) -> bool:
    return "/access_tokens" not in call.path and ".git/" not in call.path


def main() -> int:
    return 0 if asyncio.run(everything()) else 1


if __name__ == "__main__":
    sys.exit(main())
