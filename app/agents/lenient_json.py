"""Reads JSON as models write it: comments, trailing commas, single quotes, line breaks in strings.

Tolerant of form only. What is no value is an error, and what ends with the text says that it was
cut: nothing is completed. Nothing is evaluated, numbers stay text, and nesting is bounded. Linear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, or a number, `true` or `false` as it is written. None is `null`."""

    text: str | None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    items: tuple[Value, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Object:
    """The pairs in their order; a key may be there twice."""

    pairs: tuple[tuple[str, Value], ...]
    cut: bool = False

    def all(self, key: str) -> tuple[Value, ...]:
        return tuple(value for name, value in self.pairs if name == key)


Value = Scalar | Array | Object

_START = re.compile(r"\{(?=\s*+(?:[\"'}A-Za-z_/]|\Z))|\[(?=\s*+(?:[\[{\"'\]/\d-]|\Z))")
_BLANK = re.compile(r"(?:\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))*+")
_KEY = re.compile(r"\"([^\"\\\n]{0,100})\"|'([^'\\\n]{0,100})'|([A-Za-z_][\w-]{0,100})")
_ATOM = re.compile(r"(-?[0-9][0-9.eE+-]{0,40}|true|false|null|True|False|None)(?![\w.])")
_CUT_ATOM = re.compile(r"(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?)\Z")
_STRING = {quote: re.compile(rf"(?:[^{quote}\\]|\\.)*+", re.DOTALL) for quote in "\"'"}
_CLOSED = re.compile(r"\s*+(?:[,:}\]]|//|/\*|\Z)")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|(.))", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "/": "/"}
_NAMED["\\"] = "\\"


def read_values(text: str) -> list[Value]:
    """Every object and array in `text` that can be read, one after the other; what stands between
    them is no JSON. Only the last can be cut."""
    found: list[Value] = []
    position = 0
    while (start := _START.search(text, position)) is not None:
        reader = _Reader(text, start.start())
        try:
            found.append(reader.value(0))
            position = reader.at
        except _NotJson as error:
            position = max(start.end(), error.position)
    return found


class _NotJson(Exception):
    def __init__(self, position: int) -> None:
        self.position = position


@dataclass(slots=True)
class _Reader:
    text: str
    at: int

    def value(self, depth: int) -> Value:
        sign = self.text[self.at]
        if depth > MAX_DEPTH:
            raise _NotJson(self.at)
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._array(depth)
        if sign in _STRING:
            return self._string(sign)
        atom = _ATOM.match(self.text, self.at)
        if atom is not None:
            self.at = atom.end()
            word = atom.group()
            cut = self.at == len(self.text)
            return Scalar(None if word in ("null", "None") else word.lower(), cut)
        if _CUT_ATOM.match(self.text, self.at):
            self.at = len(self.text)
            return Scalar(None, cut=True)
        raise _NotJson(self.at)

    def _object(self, depth: int) -> Object:
        self.at += 1
        pairs: list[tuple[str, Value]] = []
        while not self._blank("}"):
            if self._is_over():
                return Object(tuple(pairs), cut=True)
            key = self._key()
            if key is None or self._is_over():
                return Object(tuple(pairs), cut=True)
            value = self.value(depth + 1)
            pairs.append((key, value))
            if value.cut:
                return Object(tuple(pairs), cut=True)
        return Object(tuple(pairs))

    def _array(self, depth: int) -> Array:
        self.at += 1
        items: list[Value] = []
        while not self._blank("]"):
            if self._is_over():
                return Array(tuple(items), cut=True)
            value = self.value(depth + 1)
            items.append(value)
            if value.cut:
                return Array(tuple(items), cut=True)
        return Array(tuple(items))

    def _blank(self, closing: str) -> bool:
        """Pass over blanks and one comma. Whether the closing bracket came, and was passed too."""
        self._skip()
        if self.text[self.at : self.at + 1] == ",":
            self.at += 1
            self._skip()
        if self.text[self.at : self.at + 1] != closing:
            return False
        self.at += 1
        return True

    def _key(self) -> str | None:
        """A key and its colon; None when the text ends in it."""
        match = _KEY.match(self.text, self.at)
        if match is None:
            rest = self.text[self.at : self.at + 101]
            if rest[0] in "\"'" and self.at + len(rest) == len(self.text) and "\n" not in rest:
                self.at = len(self.text)
                return None
            raise _NotJson(self.at)
        self.at = match.end()
        self._skip()
        if self._is_over():
            return None
        if self.text[self.at] != ":":
            raise _NotJson(self.at)
        self.at += 1
        self._skip()
        return next(group for group in match.groups() if group is not None)

    def _string(self, quote: str) -> Scalar:
        """A quote inside that nothing of JSON follows is one that should have been escaped."""
        start = at = self.at + 1
        while True:
            match = _STRING[quote].match(self.text, at)
            at = match.end() if match else at
            if self.text[at : at + 1] != quote:
                self.at = len(self.text)
                return Scalar(_unescape(self.text[start:]), cut=True)
            if _CLOSED.match(self.text, at + 1):
                self.at = at + 1
                return Scalar(_unescape(self.text[start:at]))
            at += 1

    def _skip(self) -> None:
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _is_over(self) -> bool:
        return self.at >= len(self.text)


def _unescape(raw: str) -> str:
    return _ESCAPE.sub(_character, raw) if "\\" in raw else raw


def _character(match: re.Match[str]) -> str:
    """What JSON knows no escape for was a backslash of the code that is quoted."""
    high, low, sign = match.groups()
    if sign is not None:
        return _NAMED.get(sign, f"\\{sign}")
    code = int(high, 16)
    if low is not None and 0xD800 <= code < 0xDC00:
        return chr(0x10000 + ((code - 0xD800) << 10) + (int(low, 16) - 0xDC00))
    second = "" if low is None else _character_of(int(low, 16))
    return _character_of(code) + second


def _character_of(code: int) -> str:
    return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
