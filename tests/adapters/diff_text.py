"""Two notations of the cases: entries of the API's file list, and line ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def with_header(entry: Mapping[str, Any]) -> bytes:
    """An entry as git prints a file: names and status come from the entry, lines from its patch."""
    new, old = entry["filename"], entry.get("previous_filename", entry["filename"])
    extra = {"added": "new file mode 100644\n", "removed": "deleted file mode 100644\n"}
    head = f"diff --git a/{old} b/{new}\n{extra.get(entry['status'], '')}"
    if old != new:
        head += f"rename from {old}\nrename to {new}\n"
    patch = entry.get("patch", "")
    return f"{head}--- a/{old}\n+++ b/{new}\n{patch}\n".encode("utf-8", "surrogateescape")


def ranges(numbers: Iterable[int | None]) -> list[list[int]]:
    """Numbers as `[first, last]` of each run without a gap."""
    found: list[list[int]] = []
    for number in sorted(number for number in numbers if number is not None):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
