"""Character references of HTML, decoded until none is left. Pure, linear."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from html.entities import html5

from app.agents.invisible import is_hidden

_LONGEST = 40
_PASSES = 3
_REFERENCE = re.compile(
    r"&(?:[aA][mM][pP];)*(#[0-9]{1,9}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,31});"
)
_BODY = re.compile(r"#([0-9]{1,9})|#[xX]([0-9a-fA-F]{1,8})|([A-Za-z][A-Za-z0-9]{1,31})")

Wanted = Callable[[str], bool]


def every(_characters: str) -> bool:
    """Decode whatever can be decoded."""
    return True


def decode_entities(text: str, wanted: Wanted = every) -> str:
    """`text` without the references whose characters are `wanted`, nor those that decoding brings
    about. `&` is always wanted. Invisible characters are left out, so that they hide nothing inside
    another reference.

    In which order references are decoded makes no difference: no two of them overlap. So the usual
    ones go in a few passes, and what was nested on purpose is reduced from its tail.
    """

    def decoded(match: re.Match[str]) -> str:
        characters = _characters(match.group(1))
        if characters is None or not (characters == "&" or wanted(characters)):
            return f"&{match.group(1)};"
        return characters

    for _ in range(_PASSES):
        if "&" not in text:
            return text
        passed = _REFERENCE.sub(decoded, text)
        if passed == text:
            return text
        text = passed
    return _reduced(text, wanted)


def _reduced(text: str, wanted: Wanted) -> str:
    """From semicolon to semicolon; only the tail of what is done can become a reference."""
    done: list[str] = []
    tail = ""
    *pieces, rest = text.split(";")
    for piece in pieces:
        tail = _closed(tail + piece, wanted)
        if len(tail) > 100 * _LONGEST:
            done.append(tail[:-_LONGEST])
            tail = tail[-_LONGEST:]
    return "".join((*done, tail, rest))


def _closed(tail: str, wanted: Wanted) -> str:
    """`tail` and a semicolon, and what follows from that."""
    while True:
        start = tail.rfind("&", max(0, len(tail) - _LONGEST))
        characters = _characters(tail[start + 1 :]) if start >= 0 else None
        if characters is None or not (characters == "&" or wanted(characters)):
            return f"{tail};"
        tail = tail[:start] + characters
        if not tail.endswith(";"):
            return tail
        tail = tail[:-1]


@lru_cache(maxsize=4096)
def _characters(body: str) -> str | None:
    """What `&body;` stands for, without invisible characters; None when it is no reference."""
    match = _BODY.fullmatch(body)
    if match is None:
        return None
    decimal, hexadecimal, name = match.groups()
    if name is not None:
        found = html5.get(f"{name};") or html5.get(f"{name.lower()};")
        return None if found is None else _visible(found)
    code = int(decimal) if decimal else int(hexadecimal, 16)
    valid = 0 < code < 0x110000 and not 0xD800 <= code < 0xE000
    return _visible(chr(code).replace("\r", "\n")) if valid else "\ufffd"


def _visible(characters: str) -> str:
    return "".join(character for character in characters if not is_hidden(character))
