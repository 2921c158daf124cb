"""Fuzzing of the diff reader and of the anchors, with git and the files themselves as oracles.

`diff`: real trees with hostile names and lines; names, states and counts are those of git's own
`--name-status` and `--numstat`, and the hunks applied to the old text give the new one. The same
diff is then mutilated: the reader may make of it what it likes, but what it says must agree with
itself, and with `git apply --numstat` where git still takes the patch.

`anchors`: findings on such changes with numbers, ranges and quotes good and bad. A place must be
one that the hunks show (by the sandbox's reader, which was written apart from ours), its text that
of the file, and a suggestion's block must hold what is applied.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from app.domain.diff import Diff, FileChange, FileStatus, LineKind
from app.domain.effects import Side
from app.domain.findings import Location
from app.git.diff import DIFF_ARGUMENTS, parse_diff
from app.review.anchors import Anchor, anchor, settle
from app.review.suggestions import suggestion_at
from app.sandbox.github import diffs as theirs
from app.sandbox.github.state import Side as TheirSide
from tests.git.repos import EXECUTABLE, FILE, LINK, SUBMODULE, BareRepo, Content, git

FILES_AT_ONCE = 25
LINES = (
    b"", b" ", b"\t", b"one", b"two", b"three", b"return x", b"    }", b"}", b"-- a/lib.py",
    b"++ b/lib.py", b"--- a/x", b"+++ b/x", b"@@ -1 +1 @@", b"@@ -0,0 +1,9 @@ def f", b"@", b"-",
    b"+", b"@@@ -1 -1 +1 @@@", b"diff --git a/x b/x", b"diff --cc x", b"index 1..2 100644", b"\\",
    b"\\ No newline at end of file", b"rename to x", b"new file mode 100644", b"cr\r", b"\r",
    b"a\x0cb\x0bc", "nel\x85 ls\u2028 ps\u2029".encode(), b"\xff\xfe", b"-- ", b"2.39.5",
    b"Binary files a and b differ", b"GIT binary patch", b"literal 12", "\u6e2c\u8a66".encode(),
)  # fmt: skip
NAMES = (
    b"a", b"b", b"a.py", b"with blank", b"tab\tname", b"line\nbreak", b'quo"te', b"back\\slash",
    "\u6e2c\u8a66.md".encode(), b"\xff\xfe", b"-option", b"b/inner", b"a/inner", b"d/x y", b" lead",
    b"trail ", b":(glob)*", b"dev/null", b"\x01", b"x\r", b"a b/a b", b"e b/e", b"\x7f.txt",
)  # fmt: skip
OPTIONS = (
    (), (), ("--unified=0",), ("--unified=1",), ("--unified=25",), ("--inter-hunk-context=3",),
    ("--diff-algorithm=patience",), ("--find-copies-harder",),
    ("--find-renames=10%",), ("--binary",),
)  # fmt: skip
_SHAPES_HUNKS = ("--unified", "--inter-hunk", "--binary")
"""Options that make git print a patch beside a summary."""

_LETTERS = {
    "A": FileStatus.ADDED, "D": FileStatus.DELETED, "M": FileStatus.MODIFIED,
    "R": FileStatus.RENAMED, "C": FileStatus.COPIED,
}  # fmt: skip


@dataclass
class Result:
    """What came of it. `problems` holds the first example of each kind."""

    iterations: int = 0
    checks: int = 0
    problems: dict[str, str] = field(default_factory=dict)

    def check(self, holds: bool, kind: str, example: object) -> None:
        self.checks += 1
        if not holds:
            self.problems.setdefault(kind, repr(example)[:2_000])


@dataclass(frozen=True)
class Change:
    """Two trees, and what git prints of them."""

    old: Mapping[bytes, Content]
    new: Mapping[bytes, Content]
    raw: bytes
    name_status: bytes
    numstat: bytes


def _changes(rng: random.Random) -> Iterator[Change]:
    """Real changes without end."""
    with tempfile.TemporaryDirectory(prefix="mergeward-fuzz-") as name:
        repo = BareRepo.create(Path(name) / "repo.git")
        while True:
            old, new = _trees(rng)
            commits = repo.commits([old, new])
            options = (*DIFF_ARGUMENTS, *rng.choice(OPTIONS))
            summed = [option for option in options if not option.startswith(_SHAPES_HUNKS)]
            raw, status, numbers = (
                git("diff", *how, *commits, "--", cwd=repo.path)
                for how in (
                    options, (*summed, "--name-status", "-z"), (*summed, "--numstat", "-z")
                )
            )  # fmt: skip
            yield Change(old, new, raw, status, numbers)


def _trees(rng: random.Random) -> tuple[dict[bytes, Content], dict[bytes, Content]]:
    old: dict[bytes, Content] = {}
    new: dict[bytes, Content] = {}
    for number in range(FILES_AT_ONCE):
        name = b"%d/%s" % (number, rng.choice(NAMES))
        before = _content(rng)
        match rng.randrange(8):
            case 0:
                new[name] = before
            case 1:
                old[name] = before
            case 2:
                old[name] = before
                new[b"moved/%d/%s" % (number, rng.choice(NAMES))] = _edited(before, rng)
            case 3:
                old[name], new[name] = before, _content(rng)
            case _:
                old[name], new[name] = before, _edited(before, rng)
    return old, new


def _content(rng: random.Random) -> Content:
    match rng.randrange(14):
        case 0:
            return FILE, b"\x00binary %d" % rng.randrange(9)
        case 1:
            return LINK, b"../target %d" % rng.randrange(9)
        case 2:
            return SUBMODULE, b"%040x" % rng.randrange(1, 9)
        case 3:
            return EXECUTABLE, _text(rng)
        case 4:
            return FILE, b""
        case _:
            return FILE, _text(rng)


def _text(rng: random.Random) -> bytes:
    lines = rng.choices(LINES, k=rng.randrange(1, 60))
    if not rng.randrange(30):
        lines.insert(rng.randrange(len(lines)), b"long " * rng.randrange(1, 20_000))
    return b"\n".join(lines) + rng.choice((b"\n", b"\n", b""))


def _edited(content: Content, rng: random.Random) -> Content:
    mode, data = content if isinstance(content, tuple) else (FILE, content)
    if mode not in (FILE, EXECUTABLE) or b"\0" in data:
        return content
    lines = data.split(b"\n")
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(lines) + 1)
        lines[at : at + rng.randrange(4)] = rng.choices(LINES, k=rng.randrange(4))
    if not rng.randrange(5):
        lines.append(b"")
    return rng.choice((FILE, FILE, EXECUTABLE)), b"\n".join(lines)


def diff(iterations: int, seed: int) -> Result:
    """One iteration is one file of a real change, or one mutilated change."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    result = Result()
    for change in _changes(rng):
        parsed = parse_diff(change.raw)
        result.iterations += len(parsed.files)
        _as_git_says(change, parsed, result)
        for file in parsed.files:
            _consistent(file, result)
            _applies(change, file, result)
        for _ in range(4):
            raw = _mutilated(change.raw, rng)
            result.iterations += 1
            _survives(raw, result, asked_git=not rng.randrange(4))
        if result.iterations >= iterations:
            return result
    return result


def _as_git_says(change: Change, parsed: Diff, result: Result) -> None:
    """Names, states and counts, in git's order. A changed type is printed as two entries."""
    wanted: list[tuple[object, ...]] = []
    counts = _counts(change.numstat)
    words = change.name_status.split(b"\0")
    retyped: set[bytes] = set()
    while len(words) > 1:
        letter = words.pop(0)[:1].decode()
        before = words.pop(0) if letter in "RC" else None
        name = words.pop(0)
        if letter == "T":
            retyped.add(name)
            wanted += [(FileStatus.DELETED, name, None), (FileStatus.ADDED, name, None)]
        else:
            wanted.append((_LETTERS[letter], name, before))
    told: list[tuple[object, ...]] = [
        (file.status, os.fsencode(file.path), os.fsencode(file.old_path) if file.old_path else None)
        for file in parsed.files
    ]
    result.check(told == wanted, "names and states are not git's", (told, wanted))
    for file in parsed.files:
        name = os.fsencode(file.path)
        if name not in retyped:
            said = (file.additions, file.deletions)
            result.check(said == counts[name], "counts are not git's", (name, said, counts[name]))


def _counts(numstat: bytes) -> dict[bytes, tuple[int, int]]:
    fields = numstat.split(b"\0")
    found: dict[bytes, tuple[int, int]] = {}
    while len(fields) > 1:
        added, deleted, name = fields.pop(0).split(b"\t", 2)
        if not name:
            name = fields[1]
            del fields[:2]
        before = found.get(name, (0, 0))
        more = (int(added.replace(b"-", b"0")), int(deleted.replace(b"-", b"0")))
        found[name] = (before[0] + more[0], before[1] + more[1])
    return found


def _consistent(file: FileChange, result: Result) -> None:
    """What is said of a file in several ways is the same each time."""
    added = removed = 0
    for hunk in file.hunks:
        lines = hunk.lines
        added += sum(line.kind is LineKind.ADDED for line in lines)
        removed += sum(line.kind is LineKind.REMOVED for line in lines)
        news = [line.new for line in lines if line.new is not None]
        result.check(news == list(hunk.right), "the new side's numbers have gaps", hunk)
        olds = [line.old for line in lines if line.old is not None]
        fits = olds == list(hunk.left) or hunk.parents > 1
        result.check(fits, "the old side's numbers have gaps", hunk)
        middle = news[len(news) // 2] if news else 1
        shown = [line for line in lines if line.new is not None and line.new == middle]
        result.check(list(hunk.shown(middle, middle)) == shown, "a line is not found", hunk)
        gone = [line for line in lines if line.kind is LineKind.REMOVED]
        for line in gone[:1] + gone[-1:]:
            found = hunk.removed(line.old or 0, line.old or 0)
            result.check(found == (line,), "a removed line is not found", hunk)
    said = (file.additions, file.deletions)
    result.check(said == (added, removed), "counts are not those of the lines", file.patch)


def _applies(change: Change, file: FileChange, result: Result) -> None:
    """The old text changed as the hunks say is the new text."""
    if file.binary or file.submodule:
        return
    before = _side(change.old, file.old_path or file.path, absent=file.status is FileStatus.ADDED)
    after = _side(change.new, file.path, absent=file.status is FileStatus.DELETED)
    try:
        made = _applied(before, file) if file.hunks else before
    except (AssertionError, IndexError) as error:
        result.check(False, "the hunks do not fit the old text", (error, file.patch))
        return
    result.check(made == after, "the hunks do not give the new text", (file.patch, made, after))


def _side(tree: Mapping[bytes, Content], path: str, *, absent: bool) -> bytes:
    content = b"" if absent else tree.get(os.fsencode(path), b"")
    return content[1] if isinstance(content, tuple) else content


def _applied(before: bytes, file: FileChange) -> bytes:
    old = before.removesuffix(b"\n").split(b"\n") if before else []
    made: list[bytes] = []
    at = 0
    for hunk in file.hunks:
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        made += old[at:start]
        at = start
        for line in hunk.lines:
            if line.old is not None:
                assert old[line.old - 1] == line.content, line
                at = line.old
            if line.new is not None:
                made.append(line.content)
                assert line.new == len(made), line
    bare = file.no_newline_at_end[1] if at == len(old) else not before.endswith(b"\n")
    return b"".join(line + b"\n" for line in [*made, *old[at:]]).removesuffix(b"\n" * bare)


def _mutilated(raw: bytes, rng: random.Random) -> bytes:
    lines = raw.split(b"\n")
    for _ in range(rng.randrange(1, 4)):
        if lines:
            rng.choice(_WOUNDS)(lines, rng.randrange(len(lines)), rng)
    return b"\n".join(lines)


def _cut_out(lines: list[bytes], at: int, rng: random.Random) -> None:
    del lines[at : at + rng.randrange(1, 5)]


def _put_in(lines: list[bytes], at: int, rng: random.Random) -> None:
    lines.insert(at, rng.choice((b"", b"+", b"-", b" ")) + rng.choice(LINES))


def _renumber(lines: list[bytes], at: int, rng: random.Random) -> None:
    heads = [n for n, line in enumerate(lines) if line.startswith(b"@@")] or [at]
    at = rng.choice(heads)
    lines[at] = re.sub(
        rb"\d+", lambda _: b"%d" % rng.randrange(40), lines[at], count=rng.randrange(5)
    )


def _cut_off(lines: list[bytes], at: int, _: random.Random) -> None:
    del lines[at + 1 :]


def _repeat(lines: list[bytes], at: int, _: random.Random) -> None:
    lines[at:at] = lines[at : at + 12]


def _shorten(lines: list[bytes], at: int, _: random.Random) -> None:
    lines[at] = lines[at][1:]


def _break(lines: list[bytes], at: int, rng: random.Random) -> None:
    broken = bytearray(lines[at] or b"x")
    broken[rng.randrange(len(broken))] = rng.randrange(256)
    lines[at] = bytes(broken)


_WOUNDS = (_cut_out, _put_in, _renumber, _cut_off, _repeat, _shorten, _break)


def _survives(raw: bytes, result: Result, *, asked_git: bool) -> None:
    try:
        parsed = parse_diff(raw)
        for file in parsed.files:
            _consistent(file, result)
            whole = file.ends - file.begins
            result.check(whole > 0, "a file without a patch", raw)
        result.check(
            all(one.ends <= two.begins for one, two in pairwise(parsed.files)),
            "patches overlap", raw,
        )  # fmt: skip
    except Exception as error:  # any is a find
        result.check(False, f"raises {type(error).__name__}", (error, raw))
        return
    if asked_git:
        _as_git_applies(raw, parsed, result)


def _as_git_applies(raw: bytes, parsed: Diff, result: Result) -> None:
    """Where git takes the patch, it sees the same numbers of lines. Where it reads another list of
    files out of broken headers there is nothing to compare."""
    told = subprocess.run(
        ["git", "apply", "--numstat", "-z", "--unidiff-zero", "-"],  # noqa: S607
        input=raw, capture_output=True, check=False, cwd="/",
    )  # fmt: skip
    if told.returncode:
        return
    wanted = _counts(told.stdout)
    said: dict[bytes, tuple[int, int]] = {}
    for file in parsed.files:
        name = file.path.encode("utf-8", "surrogateescape")
        added, deleted = said.get(name, (0, 0))
        said[name] = (added + file.additions, deleted + file.deletions)
    if said.keys() == wanted.keys():
        result.check(said == wanted, "git apply counts otherwise", raw)


def anchors(iterations: int, seed: int) -> Result:
    """One iteration is one finding."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    result = Result()
    for change in _changes(rng):
        parsed = parse_diff(change.raw)
        for file in parsed.files:
            for _ in range(6):
                result.iterations += 1
                try:
                    _place(change, parsed, file, rng, result)
                except Exception as error:  # any is a find
                    result.check(False, f"raises {type(error).__name__}", (error, file.patch))
        if result.iterations >= iterations:
            return result
    return result


def _place(
    change: Change, parsed: Diff, file: FileChange, rng: random.Random, result: Result
) -> None:
    known = parsed.file(file.path)
    if known is None:
        result.check(False, "a file of the diff is not found by its name", file.path)
        return
    old = _lines(_side(change.old, known.old_path or known.path, absent=False))
    new = _lines(_side(change.new, known.path, absent=known.status is FileStatus.DELETED))
    location = _location(known, max(len(old), len(new)), rng)
    quote = _quote(old, new, rng)
    settled = settle(location, parsed, line_count=len(new) or None, quote=quote)
    place = anchor(settled, parsed, quote)
    example = (settled, quote, place, known.patch)
    for line in (settled.start_line, settled.end_line):
        result.check(line is None or not new or 1 <= line <= len(new), "no such line", example)
    shown = theirs.parse_hunks(_patch(known))
    if place is None:
        first = settled.start_line
        visible = first is not None and _located(shown, Side.RIGHT, first)
        result.check(not visible, "a line of the diff got no comment", example)
        return
    _acceptable(place, shown, example, result)
    if not (known.submodule or known.status is FileStatus.DELETED):
        there = new if place.side is Side.RIGHT else old
        lines = list(range(place.start_line or place.line, place.line + 1))
        result.check(lines[-1] <= len(there), "beyond the file", example)
        if place.side is Side.RIGHT:
            texts = known.texts(lines[0], lines[-1])
            result.check(
                [os.fsencode(texts.get(n, "")) for n in lines] == there[lines[0] - 1 : lines[-1]],
                "the text is not the file's", example,
            )  # fmt: skip
            _suggested(place, settled, known, rng, result)


def _acceptable(
    place: Anchor, shown: tuple[theirs.Hunk, ...], example: object, result: Result
) -> None:
    """As GitHub takes it: shown by a hunk, and a range within one, from its first line on."""
    first = place.start_line if place.start_line is not None else place.line
    result.check(
        place.start_line is None or place.start_line < place.line, "a range turned round", example
    )
    side = TheirSide(place.side.value)
    inside = any(hunk.find(side, first) and hunk.find(side, place.line) for hunk in shown)
    result.check(inside, "GitHub would refuse this", example)


def _suggested(
    place: Anchor, location: Location, file: FileChange, rng: random.Random, result: Result
) -> None:
    pieces = ("```", "````", "~~~", "x = 1", "    y", "", "# `a`", "}", "`" * 12, "\t\tz")
    code = "\n".join(rng.choices(pieces, k=rng.randrange(1, 5)))
    block = suggestion_at(place, location, file, code)
    if not block:
        return
    opening, *rest = block.split("\n")
    fence = opening.removesuffix("suggestion")
    closing = [
        n for n, line in enumerate(rest) if re.fullmatch(rf" {{0,3}}`{{{len(fence)},}} *", line)
    ]
    result.check(closing == [len(rest) - 1], "the block ends early", (code, block))
    bare = [line.strip() for line in rest[:-1]]
    wanted = [line.strip() for line in code.removesuffix("\n").split("\n")]
    result.check(bare == wanted or not code, "the block is not the code", (code, block))


def _located(shown: tuple[theirs.Hunk, ...], side: Side, line: int) -> bool:
    return any(hunk.find(TheirSide(side.value), line) for hunk in shown)


def _patch(file: FileChange) -> str:
    """The file's hunks as the other reader wants them, letter by letter."""
    at = re.search(rb"(?m)^@@ ", file.patch)
    if at is None:
        return ""
    return file.patch[at.start() :].removesuffix(b"\n").decode("utf-8", "surrogateescape")


def _lines(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def _location(file: FileChange, most: int, rng: random.Random) -> Location:
    def number() -> int | None:
        return rng.choice((
            None, 0, -1, 1, most, most + 1, 10**9,
            rng.randrange(-2, most + 5), rng.randrange(-2, most + 5),
        ))  # fmt: skip

    return Location(file.path, number(), number())


def _quote(old: list[bytes], new: list[bytes], rng: random.Random) -> str:
    lines = [*old, *new]
    if not lines or rng.randrange(3) == 0:
        return ""
    text = rng.choice(lines).decode("utf-8", "replace")[:300]
    return rng.choice((text, f"It says `{text}` there.", f"prose\n{text}\nmore", f"\ud800{text}"))


SUBJECTS: dict[str, Callable[[int, int], Result]] = {"diff": diff, "anchors": anchors}
