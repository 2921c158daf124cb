"""Where code is in Markdown as GitHub reads it, erring towards prose. Pure and linear.

Erring that way is what safety needs: text taken for prose is defused, text taken for code is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$")
_CODE_SPAN = re.compile(
    r"(?<![`\\])(?P<ticks>`{1,20})(?!`)(?P<code>[^\n]{1,2000}?)(?<!`)(?P=ticks)(?!`)"
)
_CUT = "\n\n[cut here: the text was too long]"


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """`text` with `change` applied to everything that is not in a fence or a code span."""
    return "".join(
        block if is_code else _outside_spans(block, change) for block, is_code in _blocks(text)
    )


def balance_fences(text: str) -> str:
    """`text` with the fence that is still open at its end closed."""
    fence = _open_fence(text)
    if fence is None:
        return text
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def cap(text: str, limit: int) -> str:
    """At most `limit` characters, with a remark where it was cut and its fences closed."""
    if len(text) <= limit:
        return text
    kept = text[: max(0, limit - len(_CUT) - 100)]
    return balance_fences(kept) + _CUT


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Runs of lines, with whether they are fenced code. Joined they are the text."""
    run: list[str] = []
    fence: str | None = None
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        bare = line.removesuffix("\n")
        if fence is None:
            fence = _opens(bare)
            if fence is not None:
                yield "".join(run), False
                run = []
            run.append(line)
        else:
            run.append(line)
            if _closes(bare, fence):
                yield "".join(run), True
                run, fence = [], None
    yield "".join(run), fence is not None


def _open_fence(text: str) -> str | None:
    fence: str | None = None
    for line in text.split("\n"):
        if fence is None:
            fence = _opens(line)
        elif _closes(line, fence):
            fence = None
    return fence


def _opens(line: str) -> str | None:
    match = _FENCE.match(line)
    if match is None or (match["fence"][0] == "`" and "`" in match["info"]):
        return None
    return match["fence"]


def _closes(line: str, fence: str) -> bool:
    match = _FENCE.match(line)
    return (
        match is not None
        and not match["info"].strip()
        and match["fence"][0] == fence[0]
        and len(match["fence"]) >= len(fence)
    )


def _outside_spans(text: str, change: Callable[[str], str]) -> str:
    parts: list[str] = []
    position = 0
    for match in _CODE_SPAN.finditer(text):
        parts += [change(text[position : match.start()]), match.group()]
        position = match.end()
    return "".join((*parts, change(text[position:])))
