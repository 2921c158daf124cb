"""Characters that people do not see and models do: removed, or made visible. Pure, linear."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_EXTRA = (
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # fillers and joiners that are not Cf
    "\u180b\u180c\u180d\u180f\ufffe\uffff"  # and what XML cannot hold
)
_EXTRA_RANGES = ((0xFE00, 0xFE0F), (0xE0000, 0xE0FFF))  # variation selectors and tags


@cache
def _shown() -> dict[int, str]:
    """Format characters (Cf), fillers, variation selectors, tags, and C0/C1 but tab and newline,
    each as it is written out."""
    codes = [code for code in range(0x1E000) if _is_hidden(chr(code))]
    codes += [code for first, last in _EXTRA_RANGES for code in range(first, last + 1)]
    return {code: f"<U+{code:04X}>" for code in codes}


@cache
def _pattern() -> re.Pattern[str]:
    singles = (chr(code) for code in _shown() if code < _EXTRA_RANGES[-1][0])
    ranges = (f"{chr(first)}-{chr(last)}" for first, last in _EXTRA_RANGES)
    return re.compile("[" + "".join(re.escape(char) for char in singles) + "".join(ranges) + "]")


def _is_hidden(char: str) -> bool:
    category = unicodedata.category(char)
    if category == "Cc":
        return char not in "\t\n\r"
    return category in ("Cf", "Cs") or char in _EXTRA


def is_hidden(char: str) -> bool:
    """Whether one character is of those that `without_hidden` removes."""
    return ord(char) in _shown()


def without_hidden(text: str) -> str:
    """`text` without invisible, direction-changing and control characters."""
    return _pattern().sub("", text)


def show_hidden(text: str) -> str:
    """`text` with each of them written out, `<U+202E>`: for code, where hiding is a defect."""
    return text.translate(_shown()) if _pattern().search(text) else text
