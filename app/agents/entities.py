"""Character references of HTML, decoded until none is left. Pure, linear."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from html.entities import html5

from app.agents.invisible import is_hidden

_PASSES = 4
"""Honest text is settled after two, however often it was escaped; more is nested on purpose."""

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
    another reference. Text that goes on and on loses its `&` and with it all references.
    """

    def decoded(match: re.Match[str]) -> str:
        characters = _characters(match[1])
        if characters is None or not (characters == "&" or wanted(characters)):
            return f"&{match[1]};"
        return characters

    for _ in range(_PASSES):
        if "&" not in text:
            return text
        passed = _REFERENCE.sub(decoded, text)
        if passed == text:
            return text
        text = passed
    return text.replace("&", "+")


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
