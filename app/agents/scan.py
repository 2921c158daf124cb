"""A tolerant scanner for the few elements models answer with. Not an XML parser, on purpose.

Models forget to escape code, forget closing tags, and stop in the middle. Only tags that the
grammar names are tags; everything else is text, letter by letter. There are no entities but the
five that XML predefines and character numbers, no declarations, and nothing is fetched or expanded.
Linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType

Grammar = Mapping[str, frozenset[str]]
"""Container name → names of its children. A name that is no key is a leaf: it holds text."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element as found.

    `text` is a leaf's text, or everything inside a container as it stands. `cut` says that the
    answer ended inside it; `closed` that its own closing tag is there.
    """

    name: str
    attributes: Mapping[str, str]
    text: str
    children: tuple[Element, ...] = ()
    closed: bool = True
    cut: bool = False

    def all(self, name: str) -> tuple[Element, ...]:
        """The direct children of that name."""
        return tuple(child for child in self.children if child.name == name)

    def first(self, name: str) -> Element | None:
        return next((child for child in self.children if child.name == name), None)

    def value(self, name: str) -> str:
        """Text of the first child of that name, stripped; "" when there is none."""
        child = self.first(name)
        return child.text.strip() if child is not None else ""


class _Kind(Enum):
    OPEN = auto()
    CLOSE = auto()
    EMPTY = auto()


@dataclass(frozen=True, slots=True)
class _Tag:
    start: int
    end: int
    name: str
    kind: _Kind
    attributes: str


@dataclass(slots=True)
class _Found:
    """What a container's loop has gathered, and where it stopped."""

    children: list[Element] = field(default_factory=list)
    next: int = 0
    end: int = 0
    closed: bool = False
    cut: bool = False


_THOUGHTS = ("think", "thinking")


def scan(text: str, root: str, grammar: Grammar) -> Element | None:
    """The answer in `text`: the last `root` element that holds anything, else the last one.

    Thoughts (`<think>…</think>`) are not looked at. A missing root around its children is forgiven.
    None when there is nothing of the kind.
    """
    scanner = _Scanner(text, root, grammar)
    roots = scanner.roots()
    filled = [found for found in roots if found.children]
    if filled or roots:
        return (filled or roots)[-1]
    return scanner.bare_root()


class _Scanner:
    def __init__(self, text: str, root: str, grammar: Grammar) -> None:
        self._text = text
        self._root = root
        self._grammar = grammar
        self._tags = _tags(text, _names(root, grammar))
        self._closes: dict[str, list[int]] = {}
        self._firm_closes: dict[str, list[int]] = {}
        for index, tag in enumerate(self._tags):
            if tag.kind is _Kind.CLOSE:
                self._closes.setdefault(tag.name, []).append(index)
                if self._is_followed_by_structure(index):
                    self._firm_closes.setdefault(tag.name, []).append(index)

    def roots(self) -> list[Element]:
        found: list[Element] = []
        index = 0
        while index < len(self._tags):
            tag = self._tags[index]
            if tag.name in _THOUGHTS and tag.kind is _Kind.OPEN:
                index = self._after_thoughts(index)
            elif tag.name == self._root and tag.kind is not _Kind.CLOSE:
                element, index = self._element(index, (), self._root)
                found.append(element)
            else:
                index += 1
        return found

    def bare_root(self) -> Element | None:
        """The root's children without the root around them."""
        start = 0
        if self._tags and self._tags[0].name in _THOUGHTS:
            start = self._after_thoughts(0)
        found = self._children(start, self._root, ())
        if not found.children:
            return None
        return Element(
            self._root, MappingProxyType({}), "", tuple(found.children), closed=False, cut=found.cut
        )

    def _after_thoughts(self, index: int) -> int:
        close = _first_from(self._closes.get(self._tags[index].name, []), index + 1)
        return index + 1 if close is None else close + 1

    def _element(self, index: int, above: tuple[str, ...], parent: str) -> tuple[Element, int]:
        tag = self._tags[index]
        attributes = _attributes(tag.attributes)
        if tag.kind is _Kind.EMPTY:
            return Element(tag.name, attributes, ""), index + 1
        if tag.name not in self._grammar:
            return self._leaf(index, attributes, (*above, parent))
        found = self._children(
            index + 1, tag.name, above if tag.name == parent else (*above, parent)
        )
        inner = self._text[tag.end : found.end]
        element = Element(
            tag.name, attributes, inner, tuple(found.children), found.closed, found.cut
        )
        return element, found.next

    def _children(self, index: int, name: str, above: tuple[str, ...]) -> _Found:
        """Read children from `index` until the container ends, one way or another."""
        found = _Found()
        outer = self._names_above(name, above)
        while index < len(self._tags):
            tag = self._tags[index]
            if tag.kind is not _Kind.CLOSE and tag.name in self._grammar[name]:
                child, index = self._element(index, above, name)
                found.children.append(child)
                continue
            if tag.kind is _Kind.CLOSE and tag.name == name:
                found.next, found.end, found.closed = index + 1, tag.start, True
                return found
            if tag.name in outer:
                found.next, found.end = index, tag.start
                return found
            index += 1
        found.next, found.end, found.cut = index, len(self._text), True
        return found

    def _names_above(self, name: str, above: tuple[str, ...]) -> frozenset[str]:
        """Tags that can only mean that this container is over."""
        siblings = [self._grammar[parent] for parent in above]
        outer = frozenset(above).union(*siblings) if above else frozenset()
        return (outer | {name}) - self._grammar[name]

    def _leaf(
        self, index: int, attributes: Mapping[str, str], above: tuple[str, ...]
    ) -> tuple[Element, int]:
        """Text up to the closing tag that is followed by structure, else the first closing tag.

        So a quoted `</body>` inside a body does not end it. The search stops where the parent ends.
        """
        tag = self._tags[index]
        parent_end = _first_from(self._firm_closes.get(above[-1], []), index + 1)
        stop = len(self._tags) if parent_end is None else parent_end
        for closes in (self._firm_closes, self._closes):
            close = _first_from(closes.get(tag.name, []), index + 1)
            if close is not None and close < stop:
                raw = self._text[tag.end : self._tags[close].start]
                return Element(tag.name, attributes, _decode(raw)), close + 1
        return self._unclosed_leaf(index, attributes, above)

    def _unclosed_leaf(
        self, index: int, attributes: Mapping[str, str], above: tuple[str, ...]
    ) -> tuple[Element, int]:
        tag = self._tags[index]
        siblings = self._grammar[above[-1]]
        for at in range(index + 1, len(self._tags)):
            follower = self._tags[at]
            closes_parent = follower.kind is _Kind.CLOSE and follower.name in above
            opens_sibling = follower.name in siblings and self._starts_line(follower.start)
            if closes_parent or (follower.kind is not _Kind.CLOSE and opens_sibling):
                raw = self._text[tag.end : follower.start]
                return Element(tag.name, attributes, _decode(raw), closed=False), at
        raw = self._text[tag.end :]
        cut = Element(tag.name, attributes, _decode(raw), closed=False, cut=True)
        return cut, len(self._tags)

    def _starts_line(self, position: int) -> bool:
        before = self._text[max(0, position - 80) : position]
        return before.rpartition("\n")[2].strip() == ""

    def _is_followed_by_structure(self, index: int) -> bool:
        end = self._tags[index].end
        follows = self._tags[index + 1].start if index + 1 < len(self._tags) else len(self._text)
        if follows - end > 400:
            return False
        between = self._text[end:follows].strip()
        return not between or (follows == len(self._text) and between.strip("`") == "")


def _first_from(indexes: list[int], start: int) -> int | None:
    at = bisect_left(indexes, start)
    return indexes[at] if at < len(indexes) else None


def _names(root: str, grammar: Grammar) -> frozenset[str]:
    return frozenset((root, *grammar, *_THOUGHTS)).union(*grammar.values())


def _tags(text: str, names: frozenset[str]) -> list[_Tag]:
    """Every tag of a known name, outside CDATA, in order."""
    words = "|".join(sorted(names, key=len, reverse=True))
    pattern = re.compile(
        rf"<!\[CDATA\[|<[ \t]{{0,8}}(?P<close>/?)[ \t]{{0,8}}(?P<name>{words})(?![\w.:-])"
        r"(?P<attributes>[^<>]{0,2000})>",
        re.IGNORECASE,
    )
    tags: list[_Tag] = []
    position = 0
    last_cdata_end = text.rfind(_CDATA_CLOSE)
    while (match := pattern.search(text, position)) is not None:
        position = match.end()
        if match["name"] is None:
            if position <= last_cdata_end:
                position = text.index(_CDATA_CLOSE, position) + len(_CDATA_CLOSE)
            continue
        attributes = match["attributes"].rstrip()
        is_empty = attributes.endswith("/")
        kind = _Kind.CLOSE if match["close"] else _Kind.EMPTY if is_empty else _Kind.OPEN
        tags.append(_Tag(match.start(), match.end(), match["name"].lower(), kind, attributes))
    return tags


_ATTRIBUTE = re.compile(
    r"([A-Za-z_][\w:-]{0,60})\s{0,20}=\s{0,20}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))"
)


def _attributes(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        value = next(group for group in match.groups()[1:] if group is not None)
        found.setdefault(match.group(1).lower(), _unescape(value).strip())
    return MappingProxyType(found)


_CDATA_OPEN, _CDATA_CLOSE = "<![CDATA[", "]]>"
_ENTITY = re.compile(r"&(lt|gt|amp|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});")
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_BARE = re.compile(r"<|&(?!(?:lt|gt|amp|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")


def _decode(raw: str) -> str:
    """A leaf's text: CDATA as it stands; predefined entities only if the writer escaped at all.

    Text with a bare `<` or `&` was not escaped, so an `&amp;` in it is meant letter by letter.
    """
    parts: list[str] = []
    position = 0
    while (start := raw.find(_CDATA_OPEN, position)) >= 0:
        end = raw.find(_CDATA_CLOSE, start)
        if end < 0:
            break
        parts += [_decode_plain(raw[position:start]), raw[start + len(_CDATA_OPEN) : end]]
        position = end + len(_CDATA_CLOSE)
    parts.append(_decode_plain(raw[position:].replace(_CDATA_OPEN, "")))
    return "".join(parts)


def _decode_plain(raw: str) -> str:
    return raw if _BARE.search(raw) else _unescape(raw)


def _unescape(text: str) -> str:
    return _ENTITY.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    """The character of a predefined entity or of a number; what XML has no character for stays."""
    name = match[1]
    if not name.startswith("#"):
        return _CHARACTERS[name]
    digits = name[1:]
    number = int(f"0{digits}", 16) if digits.startswith("x") else int(digits)
    allowed = number in (9, 10, 13) or 32 <= number < 0xD800 or 0xE000 <= number <= 0x10FFFF
    return chr(number) if allowed else match[0]
