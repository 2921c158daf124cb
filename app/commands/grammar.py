"""What a comment asks of Mergeward. Pure: text in, commands out; who may ask is not decided here.

A command stands on a line of its own and starts with `/mergeward`. Quoted lines, code (fenced,
indented or inline) and HTML comments are somebody showing a command, not giving one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TRIGGER = "/mergeward"
"""The word a command starts with, in any case."""

VERBS = ("review", "fix")
"""The verbs that are understood, in the order in which an answer lists them."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_SHORT_ID = re.compile(r"F[1-9][0-9]{0,5}", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Review:
    """`/mergeward review`: review the head of now."""


@dataclass(frozen=True, slots=True)
class Fix:
    """`/mergeward fix F1 F3` or `/mergeward fix all`. No ids means all open findings."""

    short_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A line that starts with the trigger and says nothing we know. `text` is untrusted."""

    text: str


Command = Review | Fix | Unknown


def parse(body: str) -> tuple[Command, ...]:
    """The commands of a comment, in order, each once. Never raises; linear in the text."""
    found: dict[Command, None] = {}
    for line in _spoken_lines(body):
        words = line.split()
        if words and words[0].casefold() == TRIGGER:
            found.setdefault(_command(words[1:]))
    return tuple(found)


def _command(words: list[str]) -> Command:
    match [word.casefold() for word in words]:
        case ["review"]:
            return Review()
        case ["fix", "all"]:
            return Fix(())
        case ["fix", *ids] if ids and all(_SHORT_ID.fullmatch(word) for word in ids):
            return Fix(tuple(dict.fromkeys(word.upper() for word in ids)))
        case _:
            return Unknown(" ".join(words)[:200])


def _spoken_lines(body: str) -> list[str]:
    """Lines that are neither quoted, nor code, nor inside an HTML comment."""
    lines: list[str] = []
    fence: str | None = None
    for line in _COMMENT.sub("", body).splitlines():
        mark = _FENCE.match(line)
        if fence is not None:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
            continue
        if mark:
            fence = mark[1]
        elif not line.startswith(("    ", "\t")) and not line.lstrip().startswith(">"):
            lines.append(line.strip())
    return lines
