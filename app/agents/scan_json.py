"""An answer in JSON where our elements were asked for, as the elements it stands for. Pure.

Some models answer in JSON whatever they are told. What they found is read all the same; but that
they found nothing is believed only in the form that was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import MappingProxyType

from app.agents.lenient_json import Array, Object, Scalar, Value, read_values
from app.agents.scan import Element, Grammar

_THOUGHTS = re.compile(r"<(think|thinking)>", re.IGNORECASE)
_ATTRIBUTES = frozenset({"id", "source", "state", "reason", "ref"})
_CLAIMS = frozenset({"title", "body"})


def scan_json(text: str, root: str, grammar: Grammar) -> Element | None:
    """The answer in `text`: the last value that holds anything under the root's name or keys.

    Thoughts are not looked at. Findings that stand there without anything around them are taken
    together. None when there is nothing of the kind. `cut`: the text ended inside the answer.
    """
    if '"' not in text and "'" not in text:
        return None
    values = read_values(_without_thoughts(text))
    roots = [found for value in values if (found := _as_root(value, root, grammar)) is not None]
    filled = [found for found in roots if found.children]
    if filled or roots:
        return (filled or roots)[-1]
    bare = tuple(_bare_findings(values))
    if "finding" not in grammar[root] or not bare:
        return None
    cut = any(value.cut for value in values)
    children = tuple(_element("finding", value, grammar) for value in bare)
    return Element(root, MappingProxyType({}), "", children, closed=not cut, cut=cut)


def _without_thoughts(text: str) -> str:
    parts: list[str] = []
    position = 0
    lowered = text.lower()
    unclosed: set[str] = set()
    for match in _THOUGHTS.finditer(text):
        name = match[1].lower()
        if match.start() < position or name in unclosed:
            continue
        end = lowered.find(f"</{name}>", match.end())
        if end < 0:
            unclosed.add(name)
            continue
        parts.append(text[position : match.start()])
        position = end + len(name) + 3
    return "".join((*parts, text[position:]))


def _as_root(value: Value, root: str, grammar: Grammar) -> Element | None:
    """`{"findings": […]}`, or the keys that the root's children have."""
    if not isinstance(value, Object):
        return None
    named = value.all(root)
    if named:
        parts = [_element(root, item, grammar) for item in named]
        children = tuple(child for part in parts for child in part.children)
        return Element(
            root, MappingProxyType({}), "", children, closed=not value.cut, cut=value.cut
        )
    keys = {key for key, _ in value.pairs}
    if "finding" in grammar[root] or not keys & grammar[root]:
        return None
    return _element(root, value, grammar)


def _bare_findings(values: Iterable[Value]) -> Iterator[Object]:
    for value in values:
        for item in value.items if isinstance(value, Array) else (value,):
            if isinstance(item, Object) and {key for key, _ in item.pairs} & _CLAIMS:
                yield item


def _element(name: str, value: Value, grammar: Grammar) -> Element:
    if name not in grammar:
        return _leaf(name, value)
    if isinstance(value, Object):
        children = tuple(_children(value, name, grammar))
        attributes = _scalars(value, grammar[name])
    else:
        items = value.items if isinstance(value, Array) else ()
        (child,) = grammar[name] if len(grammar[name]) == 1 else ("",)
        children = tuple(_element(child, item, grammar) for item in items if child)
        attributes = {}
    return Element(
        name, MappingProxyType(attributes), "", children, closed=not value.cut, cut=value.cut
    )


def _children(value: Object, name: str, grammar: Grammar) -> Iterator[Element]:
    for key, inner in value.pairs:
        if key not in grammar[name]:
            continue
        if key not in grammar and isinstance(inner, Array):
            yield from (_leaf(key, item) for item in inner.items)
        elif not (isinstance(inner, Scalar) and inner.text is None and not inner.cut):
            yield _element(key, inner, grammar)


def _leaf(name: str, value: Value) -> Element:
    """Text of a value. Of an object, its words; what is an attribute in our form is one here."""
    attributes = _scalars(value, frozenset()) if isinstance(value, Object) else {}
    attributes = {key: text for key, text in attributes.items() if key in _ATTRIBUTES}
    text = "\n".join(_words(value))
    return Element(name, MappingProxyType(attributes), text, closed=not value.cut, cut=value.cut)


def _words(value: Value) -> Iterator[str]:
    match value:
        case Scalar():
            yield value.text or ""
        case Array():
            for item in value.items:
                yield from _words(item)
        case Object():
            for key, inner in value.pairs:
                if key not in _ATTRIBUTES:
                    yield from _words(inner)


def _scalars(value: Object, children: frozenset[str]) -> dict[str, str]:
    """Attributes by small name; a list of references is one value with blanks between."""
    found: dict[str, str] = {}
    for key, inner in value.pairs:
        if key not in children and not isinstance(inner, Object):
            found.setdefault(key.lower(), " ".join(_words(inner)).strip())
    return found
