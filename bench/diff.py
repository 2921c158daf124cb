"""What it costs to read a change: ours beside `unidiff`, in one run, on the same bytes.

    .venv/bin/python bench/diff.py [--rounds 15] [--largest 1000000]

Makes real diffs with git, then prints

- a diff of 20,000 lines in 300 files: parsing alone, and all of it (parsing, filter, tier, anchors
  of 300 findings), each as a ratio to unidiff's parsing alone; and what the suggestions' blocks
  cost on top, most of which is the cleaning of their text;
- time per line from there up to `--largest` lines, in 300 files and in a single one: how much
  dearer a line gets at most as a diff grows, for parsing alone and for all of it;
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
from app.review.anchors import Anchor, anchor, settle
from app.review.filter import FileFacts
from app.review.plan import plan_review
from app.review.source import first_lines
from app.review.suggestions import suggestion_at
from tests.git.repos import BareRepo

FILES, LINES, FINDINGS = 300, 20_000, 300
PARSING, ALL_OF_IT, LINEAR, MEMORY = 4.0, 1.5, 1.5, 4.0
"""The bounds: times as fast as unidiff, twice; a line of a large diff by one of a small one; the
peak of memory by the diff's size."""

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
    """Everything that is done with a change but for git, the models and the page."""
    diff = parse_diff(raw)
    facts = [FileFacts(change, first_lines(change)) for change in diff.files]
    plan = plan_review(facts, POLICY, AGENTS)
    return len(plan.files) + len(placed(diff, findings))


def placed(diff: Diff, findings: list[Said]) -> list[tuple[Said, Location, Anchor]]:
    """The findings that stand on a line, with it."""
    found = []
    for said in findings:
        location = settle(said.location, diff, line_count=5_000_000, quote=said.evidence)
        place = anchor(location, diff, said.evidence)
        if place is not None:
            found.append((said, location, place))
    return found


def blocks(diff: Diff, found: list[tuple[Said, Location, Anchor]]) -> int:
    """The suggestions' blocks."""
    return sum(
        suggestion_at(place, location, change, said.suggestion) != ""
        for said, location, place in found
        if (change := diff.file(place.path)) is not None
    )


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
    diff = parse_diff(raw)
    findings = made_findings(diff)
    found = placed(diff, findings)
    parsing, whole, other, suggesting = fastest(
        rounds,
        lambda: parse_diff(raw),
        lambda: all_of_it(raw, findings),
        lambda: by_unidiff(raw),
        lambda: blocks(diff, found),
    )
    hunks = sum(len(file.hunks) for file in parse_diff(raw).files)
    lines = raw.count(b"\n")
    print(f"{lines:,} lines, {FILES} files, {hunks:,} hunks, {len(raw):,} bytes")
    print(f"  unidiff, parsing     {other * 1e3:8.1f} ms")
    print(f"  ours, parsing        {parsing * 1e3:8.1f} ms")
    print(f"  ours, all of it      {whole * 1e3:8.1f} ms   ({FINDINGS} findings)")
    print(f"  suggestions on top   {suggesting * 1e3:8.1f} ms   ({len(found)} placed)")
    told = bounds.check("parsing", other / parsing, PARSING, at_least=True)
    print(f"  parsing, times as fast    {told}")
    told = bounds.check("all of it", other / whole, ALL_OF_IT, at_least=True)
    print(f"  all of it, times as fast  {told}")


def _sizes(largest: int) -> Iterator[int]:
    yield from (size for size in (LINES, 100_000, 300_000) if size < largest)
    yield largest


def growth(folder: Path, files: int, largest: int, rounds: int, bounds: Bounds) -> None:
    print(f"all of it, {files} file{'s' if files > 1 else ''}:")
    parsing: list[float] = []
    whole: list[float] = []
    memory: list[float] = []
    for size in _sizes(largest):
        raw = made_diff(folder, files, size)
        parse, everything, multiple = _measured(raw, rounds)
        lines = raw.count(b"\n")
        parsing.append(parse / lines)
        whole.append(everything / lines)
        memory.append(multiple)
        print(
            f"  {lines:>9,} lines, {len(raw) / 1e6:5.1f} MB: parsing {parse * 1e3:6.1f} ms, "
            f"{parse / lines * 1e6:4.2f} us a line; all of it {everything * 1e3:6.1f} ms, "
            f"{everything / lines * 1e6:4.2f} us a line; memory {multiple:.2f} x"
        )
    for name, per_line in (("parsing", parsing), ("all of it", whole)):
        told = bounds.check(f"linear {name}", _growth(per_line), LINEAR, at_least=False)
        print(f"  {name + ', dearer by':<26}{told}")
    told = bounds.check("memory", max(memory), MEMORY, at_least=False)
    print(f"  peak by size              {told}")


def _measured(raw: bytes, rounds: int) -> tuple[float, float, float]:
    """Seconds of parsing and of all of it, and the peak of memory by the diff's size."""
    findings = made_findings(parse_diff(raw))
    parse, everything = fastest(
        max(3, rounds // 3), lambda: parse_diff(raw), lambda: all_of_it(raw, findings)
    )
    text = bytearray(raw)
    return parse, everything, peak(lambda: bytes(text), lambda whole: all_of_it(whole, findings))


def _growth(per_line: list[float]) -> float:
    """The most that a line costs in a diff by what it costs in a smaller one."""
    return max(later / min(per_line[: n + 1]) for n, later in enumerate(per_line))


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
