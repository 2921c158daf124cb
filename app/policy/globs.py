"""Path patterns of the policy: which paths a list of globs selects.

The words of `.gitignore`: a pattern without a slash names files and folders at any depth, one
with a slash starts at the repository's root, `*` and `?` stop at a slash, `**` does not, a trailing
slash means everything below, and `!` takes back what an earlier pattern selected. Never
exponential, whatever the path: paths are written by strangers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase, translate
from functools import lru_cache


def selected_by(path: str, globs: Sequence[str], *, ignore_case: bool = False) -> str | None:
    """The glob that decides that `path` (repository-relative, `/` between parts) is selected.

    The last glob that matches decides; None when none does or when it starts with `!`.
    """
    parts = (path.casefold() if ignore_case else path).split("/")
    if not any(map(_hint(tuple(globs), ignore_case).match, parts)):
        return None
    for glob in reversed(globs):
        pattern = glob.casefold() if ignore_case else glob
        if _matches(parts, pattern.removeprefix("!")):
            return None if glob.startswith("!") else glob
    return None


@lru_cache(maxsize=256)
def _hint(globs: tuple[str, ...], ignore_case: bool) -> re.Pattern[str]:
    """What some part of each selected path matches. All paths of a repository are asked about, and
    nearly none is selected: one expression is quicker than going through all globs."""
    names = []
    for glob in globs:
        parts = [part for part in glob.split("/") if part.strip("*")]
        if not glob.startswith("!"):
            names.append(max(parts, key=len) if parts else "*")
    return re.compile(
        "|".join(translate(name.casefold() if ignore_case else name) for name in names) or r"(?!)"
    )


def _matches(parts: list[str], pattern: str) -> bool:
    wanted = [part for part in pattern.split("/") if part]
    if not wanted:
        return False
    if wanted[-1] == "**":  # whatever is inside, but not the folder's own name
        wanted[-1] = "*"
    if "/" not in pattern.rstrip("/"):
        wanted.insert(0, "**")
    only_folders = pattern.endswith("/")
    states = _past_stars({0}, wanted)
    for index, part in enumerate(parts):
        states = _past_stars(_step(states, part, wanted), wanted)
        is_file = index == len(parts) - 1
        if len(wanted) in states and not (is_file and only_folders):
            return True
    return False


def _step(states: set[int], part: str, wanted: list[str]) -> set[int]:
    """Where the pattern can stand after one more part of the path."""
    reached = set()
    for state in states:
        if wanted[state] == "**":
            reached.add(state)
        elif fnmatchcase(part, wanted[state]):
            reached.add(state + 1)
    return reached


def _past_stars(states: set[int], wanted: list[str]) -> set[int]:
    """`states`, and what follows a `**` in them, because it also stands for no part at all."""
    reached = set(states)
    for start in states:
        state = start
        while state < len(wanted) and wanted[state] == "**":
            state += 1
            reached.add(state)
    return reached
