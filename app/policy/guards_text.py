"""Small pieces of Markdown that the page of the guards is made of."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

_DESIGN = re.compile(r" of DESIGN §[\d.]+| \(DESIGN [^)]*\)")
"""The page is for people who don't have the design at hand."""


def prose(thing: object) -> str:
    """What a docstring says, without its references to the design; "" if there is none.

    Enumerations and dataclasses without words of their own inherit or get some: those don't count.
    """
    text = thing.__dict__.get("__doc__") if isinstance(thing, type) else thing.__doc__
    if text is None or (isinstance(thing, type) and text.startswith(f"{thing.__name__}(")):
        return ""
    return _DESIGN.sub("", inspect.cleandoc(text))


def one_line(text: str) -> str:
    return " ".join(text.split())


def listed(names: Iterable[str]) -> str:
    """`a`, `b`, `c`."""
    return ", ".join(f"`{name}`" for name in names)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table. Cells must not hold a bar."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
