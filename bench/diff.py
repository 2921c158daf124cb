"""What it costs to read a change: ours beside `unidiff`, in one run, on the same bytes.

    .venv/bin/python bench/diff.py [--rounds 15] [--largest 1000000]

Makes real diffs with git, then prints

- a diff of 20,000 lines in 300 files: parsing alone, and all of it (parsing, filter, tier, anchors
  and suggestions of 300 findings), each as a ratio to unidiff's parsing alone;
- time per line from there up to `--largest` lines, in 300 files and in a single one: the ratio of
  the dearest line to the cheapest;
- the peak of memory while all of it is done, the diff itself included, as a multiple of its size.

Rounds of both are interleaved and the fastest of each is compared, in seconds of this process, so
that other work on the machine counts as little as possible. Exit code 1 if a bound does not hold.
"""

# ruff: noqa: T201 - a program that prints
from __future__ import annotations

import argparse
import asyncio
import gc
import random
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from unidiff.patch import PatchSet

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app.agents.prompts import available_agents
from app.domain.diff import Diff, FileChange
from app.domain.findings import Location
from app.domain.policy import Policy
from app.git.diff import parse_diff
from app.review.anchors import anchor, settle
from app.review.filter import FileFacts
from app.review.plan import plan_review
from app.review.source import first_lines
from app.review.suggestions import suggestion_at
from tests.git.repos import BareRepo

FILES, LINES, FINDINGS = 300, 20_000, 300
PARSING, ALL_OF_IT, LINEAR, MEMORY = 4.0, 1.5, 2.0, 4.0
"""The bounds: times faster than unidiff, dearest line by cheapest, peak by size of the diff."""

POLICY, AGENTS = Policy(), available_agents()

_WORDS = (
    "self", "return", "value", "if", "for", "def", "await", "count", "x", "=", "==", "(a, b)",
    "# note", "None", "path.join", "{}", "+", "1",
)  # fmt: skip


@dataclass
class Bounds:
    """What was measured against what was promised."""

    broken: list[str] = field(default_factory=list)

    def check(self, name: str, value: float, bound: float, *, at_least: bool) -> str:
        holds = value >= bound if at_least else value <= bound
        if not holds:
            self.broken.append(name)
        return (
            f"{value:6.2f}  ({'>=' if at_least else '<='} {bound}: {'ok' if holds else 'MISSED'})"
        )


def made_diff(folder: Path, files: int, lines: int) -> bytes:
    """A real diff of about `lines` lines: most files changed in places, some new, some gone."""
    rng = random.Random(7)  # noqa: S311 - no secret
    old: dict[str, bytes] = {}
    new: dict[str, bytes] = {}
    for number in range(files):
        name = f"src/part{number % 17}/file_{number:05}.py"
        size = max(1, lines // files)
        before = [_line(rng) for _ in range(size * 2)]
        if number % 5 == 0:
            new[name] = _text(before[:size])
        elif number % 23 == 0:
            old[name] = _text(before[:size])
        else:
            old[name], new[name] = _text(before), _text(_edited(before, rng))
    repo = BareRepo.create(folder / f"{files}x{lines}x{len(list(folder.iterdir()))}.git")
    return asyncio.run(repo.repository.raw_diff(*repo.commits([old, new])))


def _line(rng: random.Random) -> str:
    return " " * rng.choice((0, 4, 4, 8, 12)) + " ".join(rng.choices(_WORDS, k=rng.randint(2, 9)))


def _edited(lines: list[str], rng: random.Random) -> list[str]:
    result: list[str] = []
    at = 0
    while at < len(lines):
        kept = rng.randint(10, 40)
        result += lines[at : at + kept]
        at += kept
        result += [_line(rng) for _ in range(rng.choice((0, 2, 6, 9)))]
        at += rng.choice((0, 1, 4))
    return result


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@dataclass(frozen=True)
class Said:
    """A finding as a reviewer might place it."""

    location: Location
    evidence: str
    suggestion: str | None


def made_findings(diff: Diff) -> list[Said]:
    """300 findings all over the change: good lines, ranges, quotes of code, and numbers that are
    nowhere."""
    rng = random.Random(11)  # noqa: S311 - no secret
    shown = [file for file in diff.files if file.hunks]
    return [_made_finding(shown[n * len(shown) // FINDINGS], n, rng) for n in range(FINDINGS)]


def _made_finding(file: FileChange, number: int, rng: random.Random) -> Said:
    hunk = file.hunks[rng.randrange(len(file.hunks))]
    line = rng.choice(hunk.right or hunk.left)
    texts = [item.text for item in hunk.shown(line, line)]
    kind = number % 4
    return Said(
        Location(file.path, line + (10_000_000 if kind == 3 else 0), line + (kind == 1)),
        f"It says `{texts[0].strip()}` there." if texts and kind >= 2 else "",
        "    value = 1\n" if kind < 2 else None,
    )


def all_of_it(raw: bytes, findings: list[Said]) -> int:
    """Everything that is done with a change but for git and the models."""
    diff = parse_diff(raw)
    facts = [FileFacts(change, first_lines(change)) for change in diff.files]
    plan = plan_review(facts, POLICY, AGENTS)
    placed = 0
    for said in findings:
        location = settle(said.location, diff, line_count=5_000_000, quote=said.evidence)
        place = anchor(location, diff, said.evidence)
        change = diff.file(said.location.path or "")
        if place is not None and change is not None:
            suggestion_at(place, location, change, said.suggestion)
            placed += 1
    return placed + len(plan.files)


def by_unidiff(raw: bytes) -> int:
    return len(PatchSet.from_string(raw, encoding="utf-8"))


def fastest(rounds: int, *works: Callable[[], object]) -> list[float]:
    """The least seconds of CPU of each, in turns."""
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for number, work in enumerate(works):
            gc.collect()
            start = time.process_time()
            work()
            best[number] = min(best[number], time.process_time() - start)
    return best


def peak(make: Callable[[], bytes], work: Callable[[bytes], object]) -> float:
    """The most memory in use at once, the diff included, as a multiple of the diff's size."""
    gc.collect()
    tracemalloc.start()
    raw = make()
    work(raw)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / len(raw)


def beside_unidiff(raw: bytes, rounds: int, bounds: Bounds) -> None:
    findings = made_findings(parse_diff(raw))
    parsing, whole, other = fastest(
        rounds, lambda: parse_diff(raw), lambda: all_of_it(raw, findings), lambda: by_unidiff(raw)
    )
    hunks = sum(len(file.hunks) for file in parse_diff(raw).files)
    lines = raw.count(b"\n")
    print(f"{lines:,} lines, {FILES} files, {hunks:,} hunks, {len(raw):,} bytes")
    print(f"  unidiff, parsing     {other * 1e3:8.1f} ms")
    print(f"  ours, parsing        {parsing * 1e3:8.1f} ms")
    print(f"  ours, all of it      {whole * 1e3:8.1f} ms   ({FINDINGS} findings)")
    told = bounds.check("parsing", other / parsing, PARSING, at_least=True)
    print(f"  parsing, times as fast    {told}")
    told = bounds.check("all of it", other / whole, ALL_OF_IT, at_least=True)
    print(f"  all of it, times as fast  {told}")


def _sizes(largest: int) -> Iterator[int]:
    yield from (size for size in (LINES, 100_000, 300_000) if size < largest)
    yield largest


def growth(folder: Path, files: int, largest: int, rounds: int, bounds: Bounds) -> None:
    print(f"all of it, {files} file{'s' if files > 1 else ''}:")
    per_line: list[float] = []
    memory: list[float] = []
    for size in _sizes(largest):
        raw = made_diff(folder, files, size)
        findings = made_findings(parse_diff(raw))
        lines = raw.count(b"\n")
        seconds = fastest(max(3, rounds // 3), lambda r=raw, f=findings: all_of_it(r, f))[0]  # type: ignore[misc]
        text = bytearray(raw)
        multiple = peak(lambda t=text: bytes(t), lambda r, f=findings: all_of_it(r, f))  # type: ignore[misc]
        per_line.append(seconds / lines)
        memory.append(multiple)
        print(
            f"  {lines:>9,} lines {seconds * 1e3:9.1f} ms {seconds / lines * 1e6:6.2f} us a line"
            f"   memory {multiple:.2f} x {len(raw):,} bytes"
        )
    # The fixed cost of 300 findings weighs most on the smallest diff: only growth is a fault.
    told = bounds.check("linear", max(per_line[1:]) / min(per_line), LINEAR, at_least=False)
    print(f"  dearest line by cheapest  {told}")
    told = bounds.check("memory", max(memory), MEMORY, at_least=False)
    print(f"  peak by size              {told}")


def long_line(bounds: Bounds) -> None:
    """One line of 10 MB, as a minified file that was not recognised as one."""
    line = b"x = 1; " * 1_500_000
    head = b"diff --git a/a.js b/a.js\nnew file mode 100644\n--- /dev/null\n+++ b/a.js\n"
    raw = head + b"@@ -0,0 +1 @@\n+" + line + b"\n"
    said = [Said(Location("a.js", 1), "It says `y = 2;` there.", None)]
    seconds = fastest(3, lambda: all_of_it(raw, said))[0]
    text = bytearray(raw)
    multiple = peak(lambda: bytes(text), lambda whole: all_of_it(whole, said))
    print(f"one line of {len(line):,} bytes: {seconds * 1e3:.1f} ms")
    print(f"  peak by size              {bounds.check('memory', multiple, MEMORY, at_least=False)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--largest", type=int, default=1_000_000)
    given = parser.parse_args()
    bounds = Bounds()
    with tempfile.TemporaryDirectory(prefix="mergeward-bench-") as name:
        folder = Path(name)
        beside_unidiff(made_diff(folder, FILES, LINES), given.rounds, bounds)
        growth(folder, FILES, given.largest, given.rounds, bounds)
        growth(folder, 1, given.largest, given.rounds, bounds)
        long_line(bounds)
    if bounds.broken:
        print("not kept: " + ", ".join(bounds.broken))
    return 1 if bounds.broken else 0


if __name__ == "__main__":
    sys.exit(main())
