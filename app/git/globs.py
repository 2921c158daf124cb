"""Globs over the paths of a repository. Pattern and path are both written by strangers: time is
bounded whatever they are."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from functools import lru_cache

from app.errors import GitError

GLOB_TIMEOUT_S = 10.0
"""A glob and a path are each done in time; a great many paths need a bound of their own."""


async def matching(paths: Iterable[str], pattern: str) -> tuple[str, ...]:
    """The paths that a glob matches. The loop is not kept. Raises GitError after GLOB_TIMEOUT_S."""
    matches = glob_matcher(pattern)
    ends = time.monotonic() + GLOB_TIMEOUT_S

    def find() -> tuple[str, ...]:
        found = []
        for path in paths:
            if matches(path):
                found.append(path)
            if time.monotonic() > ends:
                raise GitError(f"the glob took longer than {GLOB_TIMEOUT_S:.0f} s.")
        return tuple(found)

    return await asyncio.to_thread(find)


@lru_cache(maxsize=256)
def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """A test for one glob: `*` within a name, `**` over directories, `?` one character.

    A pattern without `/` is looked for at any depth; a leading `/` ties it to the top. All other
    characters, brackets too, mean themselves. Time is bounded by the product of the lengths,
    whatever pattern and path: both are written by strangers.
    """
    wanted = [part for part in pattern[:1000].split("/") if part]
    if "/" not in pattern and wanted:
        wanted.insert(0, "**")
    steps: list[re.Pattern[str] | None] = []
    for part in wanted:
        if part != "**" and part.startswith("**"):  # `**.py` is meant as `**/*.py`
            steps.append(None)
        steps.append(None if part == "**" else _name_pattern(part))
    if steps and steps[-1] is None:  # whatever is inside, but not the folder's own name
        steps.append(_name_pattern("*"))
    return lambda path: _matches(path.split("/"), steps)


def _matches(parts: list[str], steps: list[re.Pattern[str] | None]) -> bool:
    """Follow all ways through the pattern at once; None stands for any number of directories."""
    at = _with_skips({0}, steps)
    for part in parts:
        reached = set()
        for index in at:
            step = steps[index] if index < len(steps) else _NOTHING
            if step is None:
                reached.add(index)
            elif step.fullmatch(part):
                reached.add(index + 1)
        at = _with_skips(reached, steps)
    return len(steps) in at


def _with_skips(at: set[int], steps: list[re.Pattern[str] | None]) -> set[int]:
    reached = set(at)
    for start in at:
        index = start
        while index < len(steps) and steps[index] is None:
            index += 1
            reached.add(index)
    return reached


def _name_pattern(glob: str) -> re.Pattern[str]:
    """One name of a glob. Text between stars is taken where it first fits and never retried."""
    first, *rest = re.split(r"\*+", glob)
    parts = [_literal(first)]
    parts += [f"(?>.*?{_literal(text)})" for text in rest[:-1]]
    if rest:
        parts.append(f".*{_literal(rest[-1])}")
    return re.compile("".join(parts), re.DOTALL)


def _literal(text: str) -> str:
    return "".join("." if char == "?" else re.escape(char) for char in text)


_NOTHING = re.compile(r"(?!)")
