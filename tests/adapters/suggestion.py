"""`suggestion`: a replacement for lines of a file: the block as it reads, or the file after it."""

from __future__ import annotations

from pathlib import Path

from app.domain.findings import Location
from app.git.diff import parse_diff
from app.review.anchors import anchor
from app.review.suggestions import suggestion_at
from tests.adapters.case import Case, only_knows


async def check(case: Case, _: Path) -> None:
    only_knows(
        case.expect, "rendered_block_info", "rendered_block_text", "file_after_applying",
        "or_no_block",
    )  # fmt: skip
    given = case.input
    last = given["line"]
    first = given.get("start_line", last)
    before = "\n" * (first - 1) + given.get("original", "")
    lines = given.get("file", before).removesuffix("\n").split("\n")
    body = "".join(f"+{line}\n" for line in lines)
    head = (
        f"diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1,{len(lines)}"
    )
    diff = parse_diff(f"{head} @@\n{body}".encode("utf-8", "surrogateescape"))
    location = Location("f", first, last)
    place = anchor(location, diff)
    assert place is not None
    block = suggestion_at(place, location, diff.files[0], given["replacement"])
    if not block and case.expect.get("or_no_block"):
        return
    info, text = _read(block)
    assert info == case.expect.get("rendered_block_info", "suggestion")
    assert text == case.expect.get("rendered_block_text", text)
    after = "".join(f"{line}\n" for line in (*lines[: first - 1], *_lines(text), *lines[last:]))
    assert after == case.expect.get("file_after_applying", after)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _read(block: str) -> tuple[str, str]:
    """Info string and content, as a Markdown reader finds them: the first fitting fence closes."""
    opening, *rest = block.split("\n")
    info = opening.lstrip("`")
    fence = opening.removesuffix(info)
    closing = next(
        number
        for number, line in enumerate(rest)
        if line.strip(" ") and set(line.strip(" ")) == {"`"} and len(line.strip(" ")) >= len(fence)
    )
    return info, "".join(f"{line}\n" for line in rest[:closing])
