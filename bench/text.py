"""How long hostile text keeps us busy, on the real doors: into prompts, out to pages, into the log,
and from a model's answer to findings.

    .venv/bin/python bench/text.py [--megabytes 1 2 4] [--all]

Prints CPU seconds per input and door at each size, and how much longer twice the text takes. Exit
code 1 if a door takes longer than its bound for a megabyte, or if time grows faster than the text.
"""

# ruff: noqa: T201 - a program that prints
from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.agents.findings_xml import parse_findings
from app.agents.sanitise import attribute, code, outgoing, untrusted
from app.domain.redaction import redact

MEGABYTE = 1_000_000
PATHS = tuple(f"src/part{number}/module{number}.py" for number in range(1_000))
FINDING = (
    "<finding><path>src/a.py</path><line>5</line><severity>warning</severity>"
    "<title>T</title><body>B</body></finding>"
)


@dataclass(frozen=True, slots=True)
class Door:
    """`bound`: CPU seconds for a megabyte of anything."""

    name: str
    bound: float
    run: Callable[[str], object]


DOORS = (
    Door("untrusted", 0.2, untrusted),
    Door("attribute", 0.2, attribute),
    Door("code", 0.2, code),
    Door("outgoing", 0.2, outgoing),
    Door("redact", 0.2, redact),
    Door("answer", 2.0, lambda text: parse_findings(text, "bench", PATHS)),
)


def repeated(part: str) -> Callable[[int], str]:
    return lambda size: (part * (size // len(part) + 1))[:size]


def halves(first: str, second: str) -> Callable[[int], str]:
    return lambda size: repeated(first)(size // 2) + repeated(second)(size // 2)


def after(start: str, part: str) -> Callable[[int], str]:
    return lambda size: start + repeated(part)(size)


INPUTS: dict[str, Callable[[int], str]] = {
    "prose": repeated("The quick brown fox, a < b && c; see `x`.\n"),
    "less-than": repeated("<"),
    "ampersands": repeated("&"),
    "nested tags": halves("<pr_", "body>"),
    "zero-width": repeated("\u200b"),
    "back-ticks": repeated("`"),
    "entities": repeated("&amp;"),
    "entities of entities": halves("&", "amp;"),
    "numbers of numbers": halves("&", "num;38;"),
    "boundary tags": repeated("</pr_body>"),
    "look-alikes": repeated("＜"),
    "ideographs": repeated("中"),
    "letters on their own": repeated("ж "),
    "open comments": repeated("<!--"),
    "nested comments": halves("<!-", "-->"),
    "instructions": repeated("<?"),
    "open tags": repeated("<a b"),
    "open values": repeated('<a b="'),
    "attributes": after("<a ", 'b="c" '),
    "hidden elements": repeated("<p hidden><q hidden></p>"),
    "pictures": repeated("![a]("),
    "link titles": repeated('[a](b "c'),
    "definitions": repeated("[a]: b\n"),
    "blanks": after("<!--", " "),
    "line ends": repeated("\n"),
    "fences": repeated("```\n"),
    "fences in quotes": repeated("> ```\n"),
    "spaced ticks": repeated(" `"),
    "escaped ticks": repeated("\\`"),
    "mentions": repeated("@a "),
    "references": repeated("#1"),
    "commands": repeated("/a\n"),
    "keys": repeated("-----BEGIN PRIVATE KEY-----\nAAAA\n"),
    "tokens": repeated("sk-"),
    "web tokens": repeated("eyJ-"),
    "addresses": repeated("a://"),
    "users of addresses": repeated("://a:b"),
    "headers": repeated("authorization: "),
    "findings": after("<findings>", FINDING),
    "open findings": repeated("<finding>"),
    "open bodies": after("<findings><finding>", "<body>"),
    "CDATA": after("<findings><finding><body>", "<![CDATA["),
    "JSON findings": after('{"findings":[', '{"title":"x","body":"y"},'),
    "JSON lines": repeated('{"title":"x","body":"y"}\n'),
    "open lists": repeated("["),
    "open objects": repeated('{"a":'),
    "quotes": after('{"a":"', '" '),
}
NAMED = ("prose", "less-than", "ampersands", "nested tags", "zero-width", "back-ticks")


def seconds(run: Callable[[str], object], text: str) -> float:
    """The better of two runs: the machine may be busy with something else."""
    best = float("inf")
    for _ in range(2):
        began = time.process_time()
        run(text)
        best = min(best, time.process_time() - began)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--all", action="store_true", help="print all inputs, not only the slowest")
    arguments = parser.parse_args()
    sizes = sorted(arguments.megabytes)
    failed = False
    for door in DOORS:
        door.run("warm é up")  # tables are made at first use
        failed |= not _measured(door, sizes, show_all=arguments.all)
    return int(failed)


def _measured(door: Door, sizes: list[int], *, show_all: bool) -> bool:
    """Print a door's rows; whether it keeps its bound and its time grows as the text does."""
    rows = {
        name: [seconds(door.run, make(size * MEGABYTE)) for size in sizes]
        for name, make in INPUTS.items()
    }
    shown = sorted(rows, key=lambda name: -rows[name][0])
    print(f"{door.name}: CPU seconds at {', '.join(f'{size} MB' for size in sizes)}")
    fine = True
    for place, name in enumerate(shown):
        times, growth = rows[name], _growth(rows[name], sizes)
        broken = times[0] / sizes[0] > door.bound or growth > 1.6
        fine &= not broken
        if show_all or broken or place < 3 or name in NAMED:
            figures = "  ".join(f"{each:6.3f}" for each in times)
            print(f"  {name:22} {figures}   x{growth:.2f}{'  TOO SLOW' if broken else ''}")
    worst = max(rows[name][0] / sizes[0] for name in rows)
    print(f"  slowest of {len(rows)}: {worst:.3f} s/MB, bound {door.bound} s/MB")
    return fine


def _growth(times: list[float], sizes: list[int]) -> float:
    """Time per character at the largest size against the smallest: 1.0 is linear, and quadratic is
    the ratio of the sizes. Very short times say nothing."""
    if times[-1] < 0.05:
        return 1.0
    return (times[-1] / sizes[-1]) / max(times[0] / sizes[0], 0.005)


if __name__ == "__main__":
    sys.exit(main())
