"""YAML as far as a policy needs it: plain data, and the line on which each key stands.

Read from the parser's events and not by its loader, because a policy file is somebody else's text:
no aliases (a few lines of them unfold into gigabytes), no tags (they name types to build), no key
twice, no deep nesting. Words are read as YAML 1.2 reads them, so `off` is a word and not a boolean,
as in the editor that completes the file by its JSON Schema.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml
from yaml import events

from app.errors import PolicyError

JsonScalar = str | int | float | bool | None
JsonValue = JsonScalar | list["JsonValue"] | dict[str, "JsonValue"]
Path = tuple[str | int, ...]

MAX_BYTES = 64 * 1024
MAX_DEPTH = 12
"""The deepest key a policy can have is five levels down."""

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_CONSTANTS: dict[str, JsonScalar] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file. `lines` maps the path of each key and list item to its 1-based line."""

    value: JsonValue
    lines: dict[Path, int]

    def line_of(self, path: Path) -> int:
        """The line of `path`, or of the nearest key around it that stands in the file."""
        for length in range(len(path), 0, -1):
            if (line := self.lines.get(path[:length])) is not None:
                return line
        return 1


def read_document(text: str | bytes, origin: str) -> Document:
    """Parse one YAML document of at most 64 KiB; an empty one has the value None.

    Raises PolicyError, naming `origin` and the line, for everything the module's head rules out.
    """
    source = _decode(text, origin)
    builder = _Builder(origin)
    try:
        for event in _events(source):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise PolicyError(f"{origin} line {line}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:  # a character that YAML forbids; it carries no line
        raise PolicyError(f"{origin}: not valid YAML: {error}".replace("\n", " ")) from error
    return Document(builder.result, builder.lines)


def _decode(text: str | bytes, origin: str) -> str:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > MAX_BYTES:
        raise PolicyError(f"{origin}: {len(data)} bytes; a policy has at most {MAX_BYTES}.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"{origin} line {line}: not UTF-8; save the file as UTF-8.") from error


def _events(source: str) -> Iterator[events.Event]:
    yield from yaml.parse(source, Loader=yaml.SafeLoader)


@dataclass(slots=True)
class _Open:
    """A collection that is being read. `key` is the mapping key whose value comes next."""

    value: dict[str, JsonValue] | list[JsonValue]
    path: Path
    key: str | None = None

    def next_path(self) -> Path:
        if isinstance(self.value, list):
            return (*self.path, len(self.value))
        return (*self.path, self.key or "")

    def put(self, item: JsonValue) -> None:
        if isinstance(self.value, list):
            self.value.append(item)
        elif self.key is not None:
            self.value[self.key] = item
            self.key = None


@dataclass(slots=True)
class _Builder:
    """Turns events into data without recursion, refusing at the first thing that is not allowed."""

    origin: str
    result: JsonValue = None
    lines: dict[Path, int] = field(default_factory=dict)
    documents: int = 0
    stack: list[_Open] = field(default_factory=list)

    def take(self, event: events.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark is not None else 1
        match event:
            case events.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    self._refuse(line, "a second YAML document; a policy is one document")
            case events.AliasEvent():
                self._refuse(line, f"the alias *{event.anchor}; write the value out instead")
            case events.ScalarEvent():
                self._refuse_tag(event.tag, line)
                if not event.value.isascii() and _has_half_character(event.value):
                    self._refuse(line, "half of a surrogate pair; write the character itself")
                self._scalar(event, line)
            case events.CollectionStartEvent():
                self._refuse_tag(event.tag, line)
                self._open(event, line)
            case events.CollectionEndEvent():
                self.stack.pop()
            case _:
                pass

    def _scalar(self, event: events.ScalarEvent, line: int) -> None:
        top = self.stack[-1] if self.stack else None
        if top is None:
            self.result = _scalar_value(event)
        elif isinstance(top.value, dict) and top.key is None:
            self._key(top, event.value, line)
        else:
            self.lines.setdefault(top.next_path(), line)
            top.put(_scalar_value(event))

    def _key(self, top: _Open, key: str, line: int) -> None:
        path = (*top.path, key)
        if isinstance(top.value, dict) and key in top.value:
            first = self.lines[path]
            self._refuse(line, f"the key {key!r} is here twice (first on line {first}); keep one")
        self.lines[path] = line
        top.key = key

    def _open(self, event: events.CollectionStartEvent, line: int) -> None:
        if len(self.stack) >= MAX_DEPTH:
            self._refuse(line, f"nested deeper than {MAX_DEPTH} levels")
        value: dict[str, JsonValue] | list[JsonValue]
        value = {} if isinstance(event, events.MappingStartEvent) else []
        path: Path = ()
        if self.stack:
            top = self.stack[-1]
            if isinstance(top.value, dict) and top.key is None:
                self._refuse(line, "a list or mapping used as a key")
            path = top.next_path()
            self.lines.setdefault(path, line)
            top.put(value)
        else:
            self.result = value
        self.stack.append(_Open(value, path))

    def _refuse_tag(self, tag: str | None, line: int) -> None:
        if tag is not None and tag != "!":
            self._refuse(line, f"the tag {tag!r}; write a plain value")

    def _refuse(self, line: int, what: str) -> None:
        raise PolicyError(f"{self.origin} line {line}: {what}.")


def _has_half_character(text: str) -> bool:
    # "\ud800" in quotes: YAML allows it, no encoding of JSON or of a comment does.
    return any("\ud800" <= character <= "\udfff" for character in text)


def _scalar_value(event: events.ScalarEvent) -> JsonScalar:
    text: str = event.value
    if event.style is not None or event.tag is not None:  # quoted, a block, or marked `!`: text
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text
