"""Where a model says something is, brought to paths and lines that exist. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

_WRAPPING = " \t\r\n`'\"*<>()[]"
_LINE_SUFFIX = re.compile(
    r"^(?P<path>.*?[^:#]):{1,2}L?(?P<lines>\d+(?:\s*[-:]\s*L?\d+)?)(?::\d+)?$"
)
_HASH_SUFFIX = re.compile(r"^(?P<path>.*?)#L(?P<lines>\d+(?:-L?\d+)?)$")
_RANGE = re.compile(r"^\D{0,12}?(\d{1,9})(?:\s*(?:-|–|—|:|\.\.+|,|to|bis)\s*L?(\d{1,9}))?\D{0,3}$")


@dataclass(frozen=True, slots=True)
class Place:
    """`path` is None when the text names none. `known` says that the change has that path."""

    path: str | None
    known: bool
    lines: tuple[int, int] | None = None


def find_place(text: str, known_paths: Collection[str]) -> Place:
    """Read a path as models write it: in quotes, with `./`, `a/`, `b/`, a repository name, a line.

    A path that is not one of `known_paths` is matched if exactly one of them fits its end.
    """
    raw = text.strip().strip(_WRAPPING).replace("\\", "/")
    if not raw:
        return Place(None, known=False)
    exact = _match(raw, known_paths)
    if exact is not None:
        return Place(exact, known=True)
    for pattern in (_HASH_SUFFIX, _LINE_SUFFIX):
        suffixed = pattern.match(raw)
        if suffixed is not None:
            inner = _match(suffixed["path"], known_paths)
            path = inner if inner is not None else suffixed["path"]
            return Place(path, inner is not None, read_lines(suffixed["lines"]))
    return Place(raw, known=False)


def _match(raw: str, known_paths: Collection[str]) -> str | None:
    if raw in known_paths:
        return raw
    bare = raw.removeprefix("./").lstrip("/")
    bare = bare.removeprefix("diff/") if bare.startswith("diff/") else bare
    for candidate in (bare, bare.removesuffix(".patch"), re.sub(r"^[ab]/", "", bare)):
        if candidate in known_paths:
            return candidate
    # The longest known path that the text ends with; else the only one that ends with the text.
    inside = [path for path in known_paths if bare.endswith("/" + path)]
    if inside:
        return max(inside, key=len)
    outside = [path for path in known_paths if path.endswith("/" + bare)]
    return outside[0] if len(outside) == 1 else None


def read_lines(text: str) -> tuple[int, int] | None:
    """Read `12`, `L12`, `10-12`, `lines 10 to 12`. None when it is no place in a file."""
    stripped = text.strip().strip(_WRAPPING)
    if stripped.startswith("-"):
        return None
    match = _RANGE.match(stripped)
    if match is None:
        return None
    first = int(match.group(1))
    last = int(match.group(2)) if match.group(2) else first
    first, last = min(first, last), max(first, last)
    return (first, last) if first >= 1 else None
