"""Which lines of a comment its readers see as somebody's own words. Pure, linear, never raises.

Markdown as GitHub reads it, erring towards silence: quotes (and what Markdown takes into them),
code of every kind, raw HTML and whatever the page does not show are nobody's words. Only the line
breaks that Markdown knows part lines: another character that looks like one can't break out of a
quote.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from app.commands.spans import TAG, Spans, note_tag

_BREAK = re.compile(r"\r\n|\n|\r")
_ITEMS = r"(?:(?:[-*+]|\d{1,9}[.)]) {1,4}){0,9}"
_FENCE = re.compile(rf"(?P<before> {{0,3}}{_ITEMS})(?P<mark>`{{3,}}|~{{3,}})(?P<info>.*)$")
_QUOTE = re.compile(rf" *{_ITEMS} *>(?P<said>.*)$")
_UNSEEN = re.compile(rf" {{0,3}}{_ITEMS}(?P<mark><!--|<\?|<!\[CDATA\[|<!(?=[A-Za-z]))")
_UNSEEN_ENDS = {"<!--": "-->", "<?": "?>", "<![CDATA[": "]]>", "<!": ">"}
_VERBATIM = re.compile(rf" {{0,3}}{_ITEMS}<(?:pre|script|style|textarea)(?=[\s>]|$)", re.IGNORECASE)
_VERBATIM_END = re.compile(r"</(?:pre|script|style|textarea)>", re.IGNORECASE)
_BLOCKS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|"
    "dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|"
    "hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|"
    "search|section|source|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul"
)
_ELEMENT = re.compile(rf" {{0,3}}{_ITEMS}</?(?:{_BLOCKS})(?=[\s/>]|$)", re.IGNORECASE)
_HEADING = re.compile(r" {0,3}#{1,6}(?: |$)")
_RULE = re.compile(r" {0,3}(?:(?:=++|-++) *+|(?:\* *+){3,}+|(?:_ *+){3,}+|(?:- *+){3,}+)$")
_LIST = re.compile(r" *(?:[-*+]|\d{1,9}[.)]) +\S")
_EMPTY_ITEM = re.compile(r" *(?:[-*+]|\d{1,9}[.)]) *$")
_DEFINITION = re.compile(r" {0,3}\[[^\]]{1,999}\]:")


def spoken_lines(body: str) -> list[str]:
    """The lines that are prose of the comment itself, without white space around them."""
    return _Reader(_BREAK.split(body)).read()


@dataclass(frozen=True, slots=True)
class _Fence:
    """An open fence: its sign, how many of it, and the column where its list item's text begins."""

    sign: str
    length: int
    floor: int

    @classmethod
    def of(cls, line: str) -> _Fence | None:
        found = _FENCE.match(line)
        if found is None or ("`" in found["mark"] and "`" in found["info"]):
            return None
        before = found["before"]
        return cls(found["mark"][0], len(found["mark"]), len(before) if before.strip() else 0)

    def is_left_by(self, line: str) -> bool:
        """Whether the line is outside the list item that holds the fence."""
        return bool(line.strip()) and _indent(line) < self.floor

    def is_closed_by(self, line: str) -> bool:
        bare = line.strip()
        is_mark = len(bare) >= self.length and not bare.strip(self.sign)
        return is_mark and _indent(line) <= self.floor + 3


@dataclass(slots=True)
class _Reader:
    raw: list[str]
    found: list[str] = field(default_factory=list)
    paragraph: list[str] = field(default_factory=list)
    fence: _Fence | None = None
    until: str | re.Pattern[str] | None = None
    in_element: bool = False
    quoted: bool = False
    around: Counter[str] = field(default_factory=Counter)
    """Elements that are open and whose content is nobody's words."""

    def read(self) -> list[str]:
        lines = [line.expandtabs(4) for line in self.raw]
        last_end = max((n for n, line in enumerate(lines) if "-->" in line), default=-1)
        for number, line in enumerate(lines):
            if not self._is_covered(line):
                self._block(line, note_ends_later=number <= last_end)
        self._flush()
        return self.found

    def _is_covered(self, line: str) -> bool:
        """Whether the line belongs to a fence or to raw HTML that an earlier one began."""
        if self.fence is not None and self.fence.is_left_by(line):
            self.fence = None
        if self.fence is not None:
            self.fence = None if self.fence.is_closed_by(line) else self.fence
            return True
        if self.until is not None:
            self.until = None if _ends(self.until, line) else self.until
            return True
        if self.in_element:
            self.in_element = bool(line.strip())
            self._count(line)
            return True
        return False

    def _block(self, line: str, *, note_ends_later: bool) -> None:
        if self._ends_paragraph(line) and self._flush(note_ends_later=note_ends_later):
            if not self._is_covered(line):
                self._block(line, note_ends_later=note_ends_later)
        elif not line.strip() or (_EMPTY_ITEM.match(line) and not self.paragraph):
            self.quoted = False
        elif self._begins_block(line):
            pass
        elif _indent(line) >= 4:
            # Code, or how a paragraph goes on: then its ticks pair with those of the others.
            self.paragraph += [line] if self.paragraph else []
        elif _HEADING.match(line) or (_RULE.match(line) and not (self.quoted and "=" in line)):
            self.paragraph, self.quoted = [line], False
            self._flush()
        elif _LIST.match(line) or not self.quoted:
            self.paragraph.append(line)
            self.quoted = False

    def _ends_paragraph(self, line: str) -> bool:
        """Whether a paragraph before the line does not go on with it."""
        own = (_HEADING, _RULE, _UNSEEN, _VERBATIM, _ELEMENT)
        return (
            not line.strip()
            or (_indent(line) < 4 and _QUOTE.match(line) is not None)
            or _Fence.of(line) is not None
            or _LIST.match(line) is not None
            or any(kind.match(line) for kind in own)
        )

    def _begins_block(self, line: str) -> bool:
        """Whether the line begins, or is, what nobody on this page says."""
        if (fence := _Fence.of(line)) is not None:
            self.fence, self.quoted = fence, False
        elif quote := _QUOTE.match(line):
            self.quoted = bool(quote["said"].strip())
            self.paragraph = []
        elif unseen := _UNSEEN.match(line):
            end = _UNSEEN_ENDS[unseen["mark"]]
            self.until, self.quoted = None if end in line[unseen.start("mark") :] else end, False
        elif _VERBATIM.match(line):
            self.until, self.quoted = None if _VERBATIM_END.search(line) else _VERBATIM_END, False
        elif _ELEMENT.match(line) or (not self.paragraph and _is_lone_tag(line)):
            self.in_element, self.quoted = True, False
            self._count(line)
        else:
            return False
        return True

    def _count(self, line: str) -> None:
        """Which elements the tags of a line of raw HTML leave open."""
        for tag in TAG.finditer(line):
            note_tag(tag, self.around)

    def _flush(self, *, note_ends_later: bool = False) -> bool:
        """The paragraph is over: its lines that no span covers are spoken.

        Whether it ended within a comment that a later line ends.
        """
        lines, self.paragraph = self.paragraph, []
        if not lines or _DEFINITION.match(lines[0]):
            return False
        spans = Spans("\n".join(lines), self.around)
        covered = spans.covered()
        place = 0
        for line in lines:
            if _indent(line) < 4 and not covered[place + _indent(line)]:
                self.found.append(_without_notes(line).strip())
            place += len(line) + 1
        if spans.open_note and note_ends_later:
            self.until = "-->"
            return True
        return False


def _ends(until: str | re.Pattern[str], line: str) -> bool:
    return until in line if isinstance(until, str) else until.search(line) is not None


def _is_lone_tag(line: str) -> bool:
    return _indent(line) < 4 and TAG.fullmatch(line.strip()) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _without_notes(line: str) -> str:
    """The line without the HTML comments that begin and end on it."""
    parts = []
    place = 0
    while (start := line.find("<!--", place)) >= 0 and (end := line.find("-->", start + 4)) >= 0:
        parts.append(line[place:start])
        place = end + 3
    return "".join((*parts, line[place:]))
