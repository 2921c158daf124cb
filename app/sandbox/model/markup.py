"""The XML that the agents answer with. Everything that goes in is escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

FIELDS: tuple[str, ...] = (
    "path",
    "line",
    "start_line",
    "end_line",
    "severity",
    "category",
    "title",
    "body",
    "evidence",
    "suggestion",
)
"""Elements of a finding, in the order they are written."""


def escaped(text: str) -> str:
    """Text for an element or a quoted attribute; characters that XML cannot hold are left out."""
    return html.escape(_NOT_XML.sub("", text), quote=True)


def element(tag: str, text: str, /, **attributes: str) -> str:
    """One element with text."""
    return f"<{tag}{_attributes(attributes)}>{escaped(text)}</{tag}>"


def parent(tag: str, children: Iterable[str], /, **attributes: str) -> str:
    """One element with elements in it, one a line; `<tag/>` without any."""
    inner = "\n".join(children)
    opening = f"{tag}{_attributes(attributes)}"
    return f"<{opening}>\n{inner}\n</{tag}>" if inner else f"<{opening}/>"


def finding(
    fields: Mapping[str, str],
    also: Iterable[str] = (),
    extra: Mapping[str, str] | None = None,
    /,
    **attributes: str,
) -> str:
    """One `<finding>`. `extra` holds elements that come after the known fields."""
    parts = [element(tag, fields[tag]) for tag in FIELDS if fields.get(tag)]
    paths = [element("path", path) for path in also]
    parts += [parent("also", paths)] if paths else []
    parts += [element(tag, text) for tag, text in (extra or {}).items()]
    return parent("finding", parts, **attributes)


def _attributes(attributes: Mapping[str, str]) -> str:
    return "".join(f' {name}="{escaped(value)}"' for name, value in attributes.items() if value)
