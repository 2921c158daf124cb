"""Where in a paragraph Markdown's spans are whose text is nobody's words. Pure and linear."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import accumulate

TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9-]{0,60})"
    r"(?:[\s/](?:[^<>\"']++|\"[^\"]{0,500}+\"|'[^']{0,500}+'){0,60}+)?>"
)
NOT_SPOKEN = frozenset(
    {"blockquote", "q", "pre", "code", "samp", "kbd", "tt", "var", "del", "s", "strike"}
    | {"script", "style", "textarea", "title", "template", "noscript", "iframe", "math", "svg"}
)
"""Elements whose content is a quote, code, struck out or not shown."""

_TOKEN = re.compile(r"\\[!-/:-@\[-`{-~]|`+|<!--|<(?=[A-Za-z/])|!\[|\]\(")


class Spans:
    """Code, comments, tags with their attributes, texts of pictures and targets of links, and what
    elements of NOT_SPOKEN hold.

    `around` counts those elements that are open, and is kept up to date.
    """

    def __init__(self, text: str, around: Counter[str]) -> None:
        self.open_note = False
        """A comment begins here that does not end here."""
        self._text = text
        self._around = around
        self._change = [0] * (len(text) + 2)
        self._ticks = _runs(text)
        self._ends = {
            sign: [m.start() for m in re.finditer(re.escape(sign), text)] for sign in "])"
        }
        self._opened = 0 if around.total() else None

    def covered(self) -> list[int]:
        """For each character of the text, how many spans cover it."""
        place = 0
        while (token := _TOKEN.search(self._text, place)) is not None:
            place = self._after(token)
        if self._opened is not None:
            self._cover(self._opened, len(self._text) + 1)
        return list(accumulate(self._change))

    def _after(self, token: re.Match[str]) -> int:
        """Cover the span that the token begins; where to look for the next one."""
        start, sign, place = token.start(), token.group(), token.end()
        match sign[0]:
            case "`":
                return self._code(start, len(sign))
            case "<" if sign == "<!--":
                return self._note(start)
            case "<":
                return self._element(start)
            case "!":
                self._cover(start, _next(self._ends["]"], place))
            case "]":
                self._cover(start, _next(self._ends[")"], place))
        return place

    def _code(self, start: int, length: int) -> int:
        place = start + length
        closing = _next(self._ticks[length], place)
        if closing is None:
            return place
        self._cover(start, closing + length)
        return closing + length

    def _note(self, start: int) -> int:
        """A comment, to the end of the paragraph if it does not end before."""
        end = self._text.find("-->", start + 4)
        self.open_note = self.open_note or end < 0
        place = len(self._text) if end < 0 else end + 3
        self._cover(start, place)
        return place

    def _element(self, start: int) -> int:
        tag = TAG.match(self._text, start)
        if tag is None:
            return start + 1
        self._cover(start, tag.end())
        note_tag(tag, self._around)
        if self._opened is None and self._around.total():
            self._opened = start
        elif self._opened is not None and not self._around.total():
            self._cover(self._opened, tag.end())
            self._opened = None
        return tag.end()

    def _cover(self, start: int, end: int | None) -> None:
        if end is not None:
            self._change[start] += 1
            self._change[end] -= 1


def note_tag(tag: re.Match[str], around: Counter[str]) -> None:
    """Count the element that a tag opens or closes, if its content is nobody's words."""
    name = tag["name"].lower()
    if name in NOT_SPOKEN:
        around[name] = max(0, around[name] + (-1 if tag["close"] else 1))


def _runs(text: str) -> dict[int, list[int]]:
    """Where the runs of ticks begin, by their length."""
    found: dict[int, list[int]] = defaultdict(list)
    for run in re.finditer(r"`+", text):
        found[len(run.group())].append(run.start())
    return found


def _next(places: list[int], start: int) -> int | None:
    index = bisect_left(places, start)
    return places[index] if index < len(places) else None
