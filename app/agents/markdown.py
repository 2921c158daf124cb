"""Where code is in Markdown as GitHub reads it, erring towards prose. Pure and linear.

Erring that way is what safety needs: text taken for prose is defused, text taken for code is not.
So nothing counts as code whose borders depend on lists, quotes or tables around it: fences are
first brought to the left margin, and a code span counts only where no tick before it is open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_FENCE = re.compile(r"^(?P<indent>[ \t]*+)(?P<fence>`{3,}+|~{3,}+)(?P<info>[^\n]*)$")
_IN_CONTAINER = re.compile(
    r"^(?P<before>[ \t]*+(?:>[ \t]*+|(?:[*+-]|\d{1,9}[.)])[ \t]++)++)"
    r"(?P<fence>`{3,}+|~{3,}+)(?P<info>[^\n]*)$"
)
_TICKS_OR_ESCAPE = re.compile(r"\\+|`+")
_RULE_OF_TABLE = re.compile(r"^[ \t>|:]*+-[ \t|:-]*+$", re.MULTILINE)
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_CUT = "\n\n[cut here: the text was too long]"


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """`text`, whose fences are balanced, with `change` applied to all but fences and code spans."""
    return "".join(
        block if is_code else _outside_spans(block, change) for block, is_code in _blocks(text)
    )


def balance_fences(text: str) -> str:
    """`text` with every fence at the left margin and closed. Idempotent.

    A fence inside a list item is moved to its own line, since where it ends would depend on the
    list; one inside a quote becomes plain ticks.
    """
    if "```" not in text and "~~~" not in text:
        return text
    done: list[str] = []
    fence: str | None = None
    indent = ""
    for line in text.split("\n"):
        if fence is None:
            outside = _at_margin(line)
            opening = _FENCE.match(outside[-1])
            if opening is not None and _opens(opening):
                fence, indent = opening["fence"], opening["indent"]
                outside[-1] = outside[-1][len(indent) :]
            done += outside
        elif _closes(line, fence):
            done.append(line.lstrip(" \t"))
            fence = None
        else:
            done.append(_dedented(line, indent))
    if fence is not None:
        if done[-1] == "":
            done.pop()
        done.append(fence)
    return "\n".join(done)


def cap(text: str, limit: int) -> str:
    """`text` balanced, in at most `limit` characters; a remark says where it was cut."""
    if len(text) <= limit and len(balanced := balance_fences(text)) <= limit:
        return balanced
    room = max(0, limit - len(_CUT))
    kept = text[:room]
    while (excess := len(balanced := balance_fences(kept)) - room) > 0:
        kept = kept[: max(0, len(kept) - excess)]
    return f"{balanced}{_CUT}"[-limit:] if limit else ""


def _at_margin(line: str) -> list[str]:
    """A line outside fences, split where a list item begins with a fence, and without a fence that
    only a quote holds."""
    match = _IN_CONTAINER.match(line)
    if match is None or not _opens(match):
        return [line]
    before, fence, info = match["before"], match["fence"], match["info"]
    if ">" in before:
        escaped = "".join(f"\\{tick}" for tick in fence)
        return [f"{before}{escaped}{info}"]
    return [before.rstrip(), f"{fence}{info}"]


def _opens(match: re.Match[str]) -> bool:
    return match["fence"][0] == "~" or "`" not in match["info"]


def _closes(line: str, fence: str) -> bool:
    match = _FENCE.match(line)
    return (
        match is not None
        and not match["info"].strip(" \t")
        and match["fence"][0] == fence[0]
        and len(match["fence"]) >= len(fence)
    )


def _dedented(line: str, indent: str) -> str:
    """`line` without as much white space as stood before its fence."""
    rest = line.lstrip(" \t")
    return line[min(len(indent), len(line) - len(rest)) :]


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Runs of lines, with whether they are fenced code. Joined they are the text."""
    run: list[str] = []
    fence: str | None = None
    for line in _LINES.findall(text):
        bare = line.removesuffix("\n")
        match = _FENCE.match(bare) if fence is None and bare[:1] in ("`", "~") else None
        if match is not None and _opens(match):
            yield "".join(run), False
            run, fence = [], match["fence"]
        run.append(line)
        if fence is not None and match is None and _closes(bare, fence):
            yield "".join(run), True
            run, fence = [], None
    yield "".join(run), fence is not None


def _outside_spans(text: str, change: Callable[[str], str]) -> str:
    """Spans end on their line here. One that is still open could end on a later line and turn what
    is code there into prose, so until the paragraph ends nothing more counts as code."""
    prose: list[str] = []
    parts: list[str] = []
    is_open = False
    may_have_table = _RULE_OF_TABLE.search(text) is not None
    for line in _LINES.findall(text):
        if not line.strip():
            is_open = False
        # In a table cells come before code, so `|` may part the ticks of what looks like a span.
        pieces, left_open = ([line], True) if may_have_table and "|" in line else _spans(line)
        if is_open or left_open or len(pieces) == 1:
            is_open = is_open or left_open
            prose.append(line)
            continue
        for number, piece in enumerate(pieces):
            if number % 2 == 0:
                prose.append(piece)
            else:
                parts += [change("".join(prose)), piece]
                prose = []
    return "".join((*parts, change("".join(prose))))


def _spans(line: str) -> tuple[list[str], bool]:
    """Prose and code spans of a line in turns, and whether a run of ticks is left without its
    partner. The target of a link is read before the ticks in it, so none counts behind one."""
    ticks = _runs(line)
    target = line.find("](")
    if target >= 0 and (ticks[-1:] > [(target, target)] or ")" not in line[target:]):
        return [line], True
    pieces: list[str] = []
    position = index = 0
    followers = _followers(ticks)
    while index < len(ticks):
        closing = followers[index]
        if closing is None:
            return [line], True
        pieces += [line[position : ticks[index][0]], line[ticks[index][0] : ticks[closing][1]]]
        position, index = ticks[closing][1], closing + 1
    return [*pieces, line[position:]], False


def _runs(line: str) -> list[tuple[int, int]]:
    """Where runs of ticks are that may open or close a span.

    A backslash means itself inside a span and escapes a tick outside, so a line with an escaped
    tick is read both ways by nobody: all its ticks count as one that never closes.
    """
    if "`" not in line:
        return []
    runs: list[tuple[int, int]] = []
    slashes_end = -1
    for match in _TICKS_OR_ESCAPE.finditer(line):
        if match.group()[0] == "\\":
            slashes_end = match.end()
        elif slashes_end == match.start():
            return [match.span()]
        else:
            runs.append(match.span())
    return runs


def _followers(ticks: list[tuple[int, int]]) -> list[int | None]:
    """For each run the next one of the same length."""
    later: dict[int, int] = {}
    found: list[int | None] = [None] * len(ticks)
    for index in range(len(ticks) - 1, -1, -1):
        length = ticks[index][1] - ticks[index][0]
        found[index] = later.get(length)
        later[length] = index
    return found
