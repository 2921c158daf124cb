"""Where code is in Markdown as GitHub reads it, erring towards prose. Pure and linear.

Erring that way is what safety needs: text taken for prose is defused, text taken for code is not.
So nothing counts as code whose borders depend on lists, quotes or tables around it: fences are
first brought to the left margin, and ticks that do not clearly pair on their own line are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_FENCE = re.compile(r"^(?P<indent>[ \t]*+)(?P<fence>`{3,}+|~{3,}+)(?P<info>[^\n]*)$")
_IN_CONTAINER = re.compile(
    r"^(?P<before>[ \t]*+(?:>[ \t]*+|(?:[*+-]|\d{1,9}[.)])[ \t]++)++)"
    r"(?P<fence>`{3,}+|~{3,}+)(?P<info>[^\n]*)$"
)
_RUN = re.compile(r"`+")
_TICK = re.compile(r"(\\*+)`")
_RULE_OF_TABLE = re.compile(r"^[ \t>|:]*+-[ \t|:-]*+$", re.MULTILINE)
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_CUT = "\n\n[cut here: the text was too long]"


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """`text`, whose fences are balanced, with `change` applied to all but fences and code spans."""
    if "`" not in text and "~~~" not in text:
        return change(text)
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
    """Spans begin and end on one line here. Where GitHub might pair the ticks of a line in another
    way, with what stands before, behind or around it, they are escaped and pair with nothing."""
    prose: list[str] = []
    parts: list[str] = []
    in_target = False
    may_have_table = _RULE_OF_TABLE.search(text) is not None
    for line in _LINES.findall(text):
        in_target = in_target and bool(line.strip())
        # In a table cells come before code, so `|` may part the ticks of what looks like a span.
        is_plain = not in_target and not (may_have_table and "|" in line)
        pieces = _spans(line) if is_plain else None
        in_target = in_target or ("](" in line and ")" not in line[line.rfind("](") :])
        if pieces is None:
            prose.append(_TICK.sub(_escaped, line))
            continue
        for number, piece in enumerate(pieces):
            if number % 2 == 0:
                prose.append(piece)
            else:
                parts += [change("".join(prose)), piece]
                prose = []
    return "".join((*parts, change("".join(prose))))


def _spans(line: str) -> list[str] | None:
    """Prose and code spans of a line in turns; None when its ticks do not clearly pair.

    A backslash escapes a tick outside a span and means itself inside, so a line with both kinds is
    clear to nobody. The target of a link is read before the ticks in it.
    """
    if "`" not in line:
        return [line]
    escaped = [len(match[1]) % 2 == 1 for match in _TICK.finditer(line)]
    if any(escaped):
        return [line] if all(escaped) else None
    runs = [match.span() for match in _RUN.finditer(line)]
    target = line.find("](")
    if 0 <= target < runs[-1][0]:
        return None
    pieces: list[str] = []
    position = index = 0
    followers = _followers(runs)
    while index < len(runs):
        closing = followers[index]
        if closing is None:
            return None
        pieces += [line[position : runs[index][0]], line[runs[index][0] : runs[closing][1]]]
        position, index = runs[closing][1], closing + 1
    return [*pieces, line[position:]]


def _escaped(match: re.Match[str]) -> str:
    slashes = match[1]
    return match.group() if len(slashes) % 2 else f"{slashes}\\`"


def _followers(runs: list[tuple[int, int]]) -> list[int | None]:
    """For each run of ticks the next one of the same length."""
    later: dict[int, int] = {}
    found: list[int | None] = [None] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1] - runs[index][0]
        found[index] = later.get(length)
        later[length] = index
    return found
