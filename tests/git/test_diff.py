"""The diff reader (app/git/diff.py), mostly against git's own words about real trees."""

from __future__ import annotations

import asyncio
import os
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.diff import FileChange, FileStatus, LineKind
from app.git.diff import parse_diff
from tests.git.repos import EXECUTABLE, FILE, LINK, SUBMODULE, BareRepo, Content, git

LINES = (
    b"", b" ", b"one", b"two", b"three", b"-- a/lib.py", b"++ b/lib.py", b"--- a/x", b"+++ b/x",
    b"@@ -1 +1 @@", b"@@@ -1 -1 +1 @@@", b"diff --git a/x b/x", b"diff --cc x",
    b"index 1..2 100644",
    b"\\ No newline at end of file", b"rename to x", b"new file mode 100644", b"cr\r", b"\r",
    b"a\x0cb\x0bc", "nel\x85 ls\u2028 ps\u2029".encode(), b"\xff\xfe",
    b"Binary files a and b differ",
    b"GIT binary patch", b"-", b"+", b"\t",
)  # fmt: skip
NAMES = (
    b"a", b"b", b"a.py", b"with blank", b"tab\tname", b"line\nbreak", b'quo"te', b"back\\slash",
    "\u6e2c\u8a66.md".encode(), b"\xff\xfe", b"-option", b"b/inner", b"a/inner", b"d/x y", b" lead",
    b"trail ", b":(glob)*", b"dev/null",
)  # fmt: skip

texts = st.builds(
    lambda lines, newline: b"\n".join(lines) + (b"\n" if newline and lines else b""),
    st.lists(st.sampled_from(LINES), max_size=25),
    st.booleans(),
)
contents: st.SearchStrategy[Content] = st.one_of(
    texts,
    texts.map(lambda text: (EXECUTABLE, text)),
    st.just((FILE, b"\x00binary\x01")),
    st.just((LINK, b"../../etc/passwd")),
    st.sampled_from([(SUBMODULE, b"1" * 40), (SUBMODULE, b"2" * 40)]),
)


def _fits(names: list[bytes]) -> bool:
    return not any(one.startswith(other + b"/") for one in names for other in names)


trees = st.dictionaries(st.sampled_from(NAMES), contents, max_size=6).filter(
    lambda tree: _fits(list(tree))
)


@pytest.fixture(scope="session")
def repo(tmp_path_factory: pytest.TempPathFactory) -> BareRepo:
    return BareRepo.create(tmp_path_factory.mktemp("diffs") / "repo.git")


def _change(repo: BareRepo, old: dict[bytes, Content], new: dict[bytes, Content]) -> list[str]:
    return repo.commits([old, new])


def _numstat(repo: BareRepo, commits: list[str]) -> list[tuple[int, int, bytes, bytes | None]]:
    """Added, deleted, name and old name of each file, by git."""
    fields = git("diff", "--numstat", "-z", "-M", "-l1000", *commits, cwd=repo.path).split(b"\0")
    found = []
    while len(fields) > 1:
        added, deleted, name = fields.pop(0).split(b"\t", 2)
        old = None if name else fields.pop(0)
        counts = [0 if text == b"-" else int(text) for text in (added, deleted)]
        found.append((*counts, name or fields.pop(0), old))
    return found  # type: ignore[return-value]  # two counts, always


def _name_status(repo: BareRepo, commits: list[str]) -> list[tuple[str, bytes, bytes | None]]:
    fields = git("diff", "--name-status", "-z", "-M", "-l1000", *commits, cwd=repo.path)
    words = fields.split(b"\0")
    found = []
    while len(words) > 1:
        letter = words.pop(0)[:1].decode()
        old = words.pop(0) if letter in "RC" else None
        found.append((letter, words.pop(0), old))
    return found


LETTERS = {
    FileStatus.ADDED: "A",
    FileStatus.DELETED: "D",
    FileStatus.MODIFIED: "M",
    FileStatus.RENAMED: "R",
    FileStatus.COPIED: "C",
}


def _without_type_changes(statuses: list[tuple[str, bytes, bytes | None]]) -> list[object]:
    """Git's summary says `T` once where its diff shows a deletion and an addition."""
    flat: list[object] = []
    for letter, name, old in statuses:
        flat += [("D", name, None), ("A", name, None)] if letter == "T" else [(letter, name, old)]
    return flat


@settings(max_examples=40)
@given(old=trees, new=trees)
def test_files_and_counts_are_those_that_git_reports(
    repo: BareRepo, old: dict[bytes, Content], new: dict[bytes, Content]
) -> None:
    """Names, status, order and counts agree with `--name-status` and `--numstat`; the text of
    each hunk line and its numbers with the two files."""
    commits = _change(repo, old, new)
    files = asyncio.run(repo.repository.diff(*commits)).files
    statuses = _name_status(repo, commits)
    read = [(LETTERS[f.status], os.fsencode(f.path), _bytes(f.old_path)) for f in files]
    assert read == _without_type_changes(statuses)
    retyped = {name for letter, name, _ in statuses if letter == "T"}
    counted = [(f.additions, f.deletions, os.fsencode(f.path), _bytes(f.old_path)) for f in files]
    assert [entry for entry in counted if entry[2] not in retyped] == [
        entry for entry in _numstat(repo, commits) if entry[2] not in retyped
    ]
    _lines_are_those_of_the_files(files, old, new)


def _bytes(path: str | None) -> bytes | None:
    return None if path is None else os.fsencode(path)


def _lines_are_those_of_the_files(
    files: tuple[FileChange, ...], old: dict[bytes, Content], new: dict[bytes, Content]
) -> None:
    """Applying the hunks to the old file gives the new one, line by line with the right numbers."""
    for file in files:
        if file.binary or file.submodule:
            assert file.hunks == () or file.submodule
            continue
        before = _data(old.get(os.fsencode(file.old_path or file.path)), file, new=False)
        after = _data(new.get(os.fsencode(file.path)), file, new=True)
        if file.hunks:
            assert _applied(before, file) == after
        else:
            assert before == after


def _data(content: Content | None, file: FileChange, *, new: bool) -> bytes:
    absent = FileStatus.DELETED if new else FileStatus.ADDED
    if content is None or file.status is absent:
        return b""
    return content[1] if isinstance(content, tuple) else content


def _applied(before: bytes, file: FileChange) -> bytes:
    """The old file changed as the hunks say."""
    old = before.removesuffix(b"\n").split(b"\n") if before else []
    result: list[bytes] = []
    at = 0
    for hunk in file.hunks:
        start = hunk.old_start - 1 if any(line.old for line in hunk.lines) else hunk.old_start
        result += old[at:start]
        at = start
        for line in hunk.lines:
            if line.old is not None:
                assert old[line.old - 1] == line.content
                at = line.old
            if line.new is not None:
                result.append(line.content)
                assert line.new == len(result)
    # Git says how a file ends only where a hunk shows its last line.
    bare = file.no_newline_at_end[1] if at == len(old) else not before.endswith(b"\n")
    return b"".join(line + b"\n" for line in [*result, *old[at:]]).removesuffix(b"\n" * bare)


@settings(max_examples=300)
@given(st.binary(max_size=400) | texts)
def test_no_bytes_make_the_reader_fail(raw: bytes) -> None:
    """Whatever the input, there is an answer, and numbers on each side only grow."""
    for file in parse_diff(
        raw + b"\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n" + raw
    ).files:
        for hunk in file.hunks:
            for side in ("old", "new"):
                numbers = [n for line in hunk.lines if (n := getattr(line, side)) is not None]
                assert numbers == sorted(set(numbers))


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=8), st.integers(0, 400))
def test_a_cut_diff_keeps_what_is_whole(lines: list[bytes], keep: int) -> None:
    """A diff that ends early still gives its lines the right numbers."""
    body = b"".join(b"+%s\n" % line for line in lines)
    whole = b"diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n"
    whole += b"@@ -0,0 +1,%d @@\n%s" % (len(lines), body)
    cut = parse_diff(whole[: max(20, keep)])
    full = parse_diff(whole).files[0].hunks[0].lines
    for hunk in cut.files[0].hunks:
        assert [line.new for line in hunk.lines] == list(range(1, len(hunk.lines) + 1))
        assert hunk.lines[:-1] == full[: len(hunk.lines[:-1])]


COMBINED = b"""diff --cc m.py
index 1111111,2222222..3333333
--- a/m.py
+++ b/m.py
@@@ -1,4 -1,4 +1,5 @@@
  one
- two
 -deux
++zwei
 +von rechts
+ von links
  three
diff --git a/z.py b/z.py
index 1..2 100644
--- a/z.py
+++ b/z.py
@@ -1 +1 @@
-a
+b
"""


def test_a_merge_shows_the_lines_of_its_result() -> None:
    """A combined diff numbers the merge's own lines and does not spoil the file after it."""
    merge, other = parse_diff(COMBINED).files
    assert (merge.path, other.path) == ("m.py", "z.py")
    assert [(line.kind, line.new, line.content) for line in merge.hunks[0].lines] == [
        (LineKind.CONTEXT, 1, b"one"),
        (LineKind.ADDED, 2, b"zwei"),
        (LineKind.ADDED, 3, b"von rechts"),
        (LineKind.ADDED, 4, b"von links"),
        (LineKind.CONTEXT, 5, b"three"),
    ]
    assert (other.additions, other.deletions) == (1, 1)


def test_a_cut_hunk_does_not_swallow_the_next_file() -> None:
    """A header can't be a hunk's line: its first byte is none of a hunk's."""
    raw = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n one\n"
    raw += b"diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
    assert [file.path for file in parse_diff(raw).files] == ["x", "y"]


def test_words_after_the_hunks_are_no_headers() -> None:
    """The signature that a mailed patch ends with, or a message between two, renames nothing."""
    raw = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n"
    raw += b"rename to y\n--- a/z\nnew file mode 120000\n"
    (file,) = parse_diff(raw).files
    assert (file.path, file.status, file.symlink) == ("x", FileStatus.MODIFIED, False)


@pytest.mark.parametrize(
    ("old", "new", "ends"),
    [
        pytest.param(b"a\nb", b"a\nb\n", (True, False), id="gained"),
        pytest.param(b"a\nb\n", b"a\nb", (False, True), id="lost"),
        pytest.param(b"a\nb", b"c\nb", (True, True), id="neither-has-it"),
        pytest.param(b"a\nb", b"a\nc", (True, True), id="both-changed"),
        pytest.param(b"a\n", b"c\n", (False, False), id="both-have-it"),
    ],
)
def test_a_missing_last_line_end_belongs_to_its_side(
    repo: BareRepo, old: bytes, new: bytes, ends: tuple[bool, bool]
) -> None:
    """The remark speaks of the line before it, and of no other side."""
    commits = _change(repo, {b"f": old}, {b"f": new})
    (file,) = asyncio.run(repo.repository.diff(*commits)).files
    assert file.no_newline_at_end == ends


@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        pytest.param(b"-a\n\\ No newline at end of file\n+b\n", True, False, id="old"),
        pytest.param(b"-a\n+b\n\\ No newline at end of file\n", False, True, id="new"),
        pytest.param(
            b"-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n", True, True,
            id="both",
        ),
        pytest.param(b"-a\n+b\\\n", False, False, id="line-ends-in-backslash"),
        pytest.param(b"-\\ No newline at end of file\n+b\n", False, False, id="line-that-says-so"),
    ],
)  # fmt: skip
def test_a_remark_speaks_of_the_line_before_it(body: bytes, old: bool, new: bool) -> None:
    """It is no line itself, and never ends the hunk."""
    head = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n"
    (file,) = parse_diff(head + body).files
    assert file.no_newline_at_end == (old, new)
    assert [(line.old, line.new) for line in file.hunks[0].lines] == [(1, None), (None, 1)]


def test_numbers_no_file_has_are_no_hunk() -> None:
    """A number too long to be read as one is passed over like everything not understood."""
    raw = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -%s +1 @@\n-a\n+b\n" % (b"9" * 5_000)
    assert [file.path for file in parse_diff(raw).files] == ["x"]


@pytest.mark.parametrize(
    ("numbers", "body"),
    [
        (b"-1 +1", b"-a\n+b\n"),
        (b"-0,0 +1,2", b"+a\n+b\n"),
        (b"-1,2 +0,0", b"-a\n-b\n"),
        (b"-1,2 +1,2", b"+n\n c\n-a\n"),
        (b"-1,2 +1,2", b" a\n-b\n\\ No newline at end of file\n+c\n"),
        (b"-1 +1,2", b"-a\n+b\n+c\n\\ No newline at end of file\n"),
    ],
)
@pytest.mark.parametrize(
    "after", [b"-- \n2.39.5\n", b"+x\n", b" x\n", b"\n", b"\n\n+x\n\\ No newline at end of file\n"]
)
def test_what_follows_a_hunk_is_not_its_own(numbers: bytes, body: bytes, after: bytes) -> None:
    """A hunk ends where its counts say, also when words after it begin like its lines."""
    whole = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ %s @@\n%s" % (numbers, body)
    (alone,), (followed,) = parse_diff(whole).files, parse_diff(whole + after).files
    assert followed.hunks == alone.hunks
    assert followed.hunks[0].body == body
    assert (followed.additions, followed.deletions) == (alone.additions, alone.deletions)
    assert followed.no_newline_at_end == alone.no_newline_at_end


def test_a_replaced_file_is_the_one_that_is_there(repo: BareRepo) -> None:
    """A file that became a link has two entries; asked by name, the new side answers."""
    commits = _change(repo, {b"cfg": b"a=1\n"}, {b"cfg": (LINK, b"/etc/hosts")})
    diff = asyncio.run(repo.repository.diff(*commits))
    assert [file.status for file in diff.files] == [FileStatus.DELETED, FileStatus.ADDED]
    found = diff.file("cfg")
    assert found is not None
    assert found.symlink


SETTINGS = {
    "diff.noprefix": "true", "diff.mnemonicPrefix": "true", "diff.renames": "false",
    "color.ui": "always", "color.diff": "always", "core.quotePath": "false",
    "diff.external": "/bin/false", "diff.context": "0", "diff.interHunkContext": "9",
    "diff.algorithm": "patience", "diff.indentHeuristic": "false",
    "diff.suppressBlankEmpty": "true",
    "diff.submodule": "log", "diff.ignoreSubmodules": "all", "diff.orderFile": "/dev/null",
    "diff.relative": "true", "diff.wordRegex": ".", "diff.colorMoved": "zebra",
    "diff.py.textconv": "/bin/false", "diff.py.binary": "true", "diff.renameLimit": "1",
}  # fmt: skip


@pytest.mark.parametrize("setting", [*SETTINGS, "all"])
async def test_no_setting_of_the_machine_shapes_a_diff(tmp_path: Path, setting: str) -> None:
    """A repository's own configuration and attributes change nothing about what we read."""
    before = "".join(f"def {letter}():\n    pass\n\n" for letter in string.ascii_lowercase)
    # An insertion that can stand at two places: before a comment like its own, or after it.
    before += "# note\ndef x():\n    1\n\n# note\ndef y():\n    2\n"
    after = before.replace("def c", "def cc").replace(
        "# note\ndef y", "# note\ndef n():\n    3\n\n# note\ndef y"
    )
    repo = BareRepo.create(tmp_path / "plain.git")
    before_tree: dict[bytes, Content] = {
        b"a/m.py": before.encode(),
        b"\xc3\xa4 b.py": b"x\n" * 30,
        b".gitattributes": b"*.py -diff diff=py\n",
        b"sub": (SUBMODULE, b"1" * 40),
    }
    after_tree: dict[bytes, Content] = {
        b"a/n.py": after.encode(),
        b"z/c.py": b"x\n" * 29,
        b"sub": (SUBMODULE, b"2" * 40),
    }
    old, new = repo.commits([before_tree, after_tree])
    expected = await repo.repository.raw_diff(old, new)
    for key, value in SETTINGS.items():
        if setting in (key, "all"):
            git("config", key, value, cwd=repo.path)
    assert await repo.repository.raw_diff(old, new) == expected
    assert expected.count(b"rename from") == 2


def test_a_diff_that_got_carriage_returns_on_its_way_names_its_files() -> None:
    """Git writes a name's own CR as an escape; what stands in a hunk belongs to the text."""
    raw = b"diff --git a/x y b/x y\r\nindex 1..2 100755\r\n--- a/x y\t\r\n+++ b/x y\t\r\n"
    (file,) = parse_diff(raw + b"@@ -1 +1 @@\r\n-a\r\n+b\r\n").files
    assert (file.path, file.new_mode, file.old_path) == ("x y", "100755", None)
    assert [line.content for line in file.hunks[0].lines] == [b"a\r", b"b\r"]
