"""Source lines as the tools show them, with their numbers.

`read_file` prints `{n:>6}<tab>{text}`. `read_patch` prints git's headers, and each line of a hunk
as `{old:>6} {new:>6} {sign}{text}` with six spaces for the side that has no number. A removed line
is not a line of the file any more, so it is never seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from app.sandbox.model.conversation import Conversation, Exchange

_FILE_LINE = re.compile(r" *([0-9]+)\t(.*)", re.DOTALL)
_ADDED_LINE = re.compile(r" {7} *([0-9]+) \+(.*)", re.DOTALL)
_CONTEXT_LINE = re.compile(r" *[0-9]+ +([0-9]+)  (.*)", re.DOTALL)
_NEW_NAME = re.compile(r"\+\+\+ b/(.*)")
_MISSING = re.compile(
    r"not exist|not found|no such|no file|not a file|not in the|deleted|removed", re.IGNORECASE
)
_CUT = re.compile(r"\bcut\b|truncated|more lines|lines more|smaller part", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SeenLine:
    """One line of a file at the head, as a tool showed it. `added` by the change under review."""

    path: str
    number: int
    text: str
    added: bool


class Reading(Enum):
    """What a `read_file` call established about its file."""

    WHOLE = auto()
    PART = auto()
    MISSING = auto()
    REFUSED = auto()


def seen_lines(conversation: Conversation) -> tuple[SeenLine, ...]:
    """Every line of the head that the tools of this conversation showed, in order."""
    return tuple(line for exchange in conversation.exchanges for line in _lines(exchange))


def _lines(exchange: Exchange) -> Iterator[SeenLine]:
    if exchange.is_error:
        return
    if exchange.name == "read_patch":
        yield from _patch_lines(exchange)
    elif exchange.name == "read_file":
        for number, text in _file_lines(exchange.text):
            yield SeenLine(exchange.path, number, text, added=False)


def _split(text: str) -> list[str]:
    # Not splitlines(): form feeds and exotic separators are part of a source line.
    return [line.removesuffix("\r") for line in text.split("\n")]


def _file_lines(text: str) -> Iterator[tuple[int, str]]:
    for line in _split(text):
        match = _FILE_LINE.fullmatch(line)
        if match:
            yield int(match.group(1)), match.group(2)


def _patch_lines(exchange: Exchange) -> Iterator[SeenLine]:
    path = exchange.path
    for line in _split(exchange.text):
        name = _NEW_NAME.fullmatch(line)
        added = _ADDED_LINE.fullmatch(line)
        match = added or _CONTEXT_LINE.fullmatch(line)
        if name:
            path = name.group(1).removesuffix("\t")
        elif match:
            yield SeenLine(path, int(match.group(1)), match.group(2), added=added is not None)


def reading_of(exchange: Exchange) -> Reading:
    """What that `read_file` call established: an empty file is read whole."""
    numbers = [number for number, _ in _file_lines(exchange.text)]
    if not numbers or exchange.is_error:
        return _without_lines(exchange)
    ranged = exchange.input.get("start_line") or exchange.input.get("end_line")
    remarks = [line for line in _split(exchange.text) if not _FILE_LINE.fullmatch(line)]
    cut = any(_CUT.search(line) for line in remarks)
    return Reading.PART if ranged or cut or numbers[0] != 1 else Reading.WHOLE


def _without_lines(exchange: Exchange) -> Reading:
    if _MISSING.search(exchange.text):
        return Reading.MISSING
    if exchange.text.strip() or exchange.is_error:
        return Reading.REFUSED
    return Reading.WHOLE


def content_of(exchange: Exchange) -> str:
    """The file's text as that `read_file` call showed it, without the numbers."""
    return "\n".join(text for _, text in _file_lines(exchange.text))
