"""Reading a commit's files without a checkout (app/git/objects.py)."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import itertools
import os
import re
import resource
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.errors import GitError
from app.git import globs, objects
from app.git.globs import glob_matcher, matching
from app.git.mirror import Mirrors
from app.git.objects import MAX_HITS, GrepHit, Tree, hits_of
from app.git.process import Remote
from tests.git.repos import EXECUTABLE, LINK, SUBMODULE, BareRepo, Content, git
from tests.git.test_measure import exploding

FILES: dict[bytes, Content] = {
    b"a.py": b"one\nsecret two\n",
    b"src/b.py": b"def f(x):\n    return x + 1\n",
    b"src/deep/c.txt": b"secret\n",
    b"run.sh": (EXECUTABLE, b"echo secret\n"),
    b"link": (LINK, b"/etc/passwd"),
    b"folder-link": (LINK, b"src"),
    b"up": (LINK, b"../../outside"),
    b"sub": (SUBMODULE, b"1" * 40),
    b"-option": b"option\n",
    b":(glob)**": b"magic\n",
    b"*": b"star\n",
    b"app/[id]/page.tsx": b"page\n",
    b"with\nline break": b"secret break\n",
    b"\xff\xfe": b"secret bytes\n",
    "\u6e2c.md".encode(): b"secret name\n",
    b"binary": b"\x00secret\n",
    b"late-nul": b"secret\n" + b"x" * 9000 + b"\n\x00secret\n",
}


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    repo = BareRepo.create(tmp_path_factory.mktemp("objects") / "repo.git")
    return repo.repository.tree(repo.commit(FILES))


@pytest.mark.parametrize(
    ("path", "content"),
    [
        pytest.param("a.py", b"one\nsecret two\n", id="plain"),
        pytest.param("run.sh", b"echo secret\n", id="executable"),
        pytest.param("-option", b"option\n", id="like-an-option"),
        pytest.param(":(glob)**", b"magic\n", id="like-pathspec-magic"),
        pytest.param("*", b"star\n", id="star"),
        pytest.param("with\nline break", b"secret break\n", id="line-break"),
        pytest.param("\udcff\udcfe", b"secret bytes\n", id="not-utf-8"),
        pytest.param("\u6e2c.md", b"secret name\n", id="not-ascii"),
        pytest.param("binary", b"\x00secret\n", id="binary"),
    ],
)
async def test_a_regular_file_is_read_by_its_exact_name(
    tree: Tree, path: str, content: bytes
) -> None:
    """A name is a name: no pattern, no option, no encoding gets in the way."""
    assert await tree.read(path) == content


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("link", id="link"),
        pytest.param("folder-link/b.py", id="through-a-link"),
        pytest.param("up/x", id="link-out"),
        pytest.param("sub", id="submodule"),
        pytest.param("sub/x", id="in-a-submodule"),
        pytest.param("src", id="directory"),
        pytest.param("src/", id="slash-at-end"),
        pytest.param("a.p?", id="pattern"),
        pytest.param("**", id="stars"),
        pytest.param("../a.py", id="dot-dot"),
        pytest.param("src/../a.py", id="dot-dot-inside"),
        pytest.param("./a.py", id="dot"),
        pytest.param("/etc/passwd", id="absolute"),
        pytest.param(".git/config", id="git"),
        pytest.param("src/.GIT/config", id="git-nested"),
        pytest.param("src//b.py", id="empty-part"),
        pytest.param("src\\b.py", id="backslash"),
        pytest.param("a.py\0", id="nul"),
        pytest.param("\ud83d", id="half-a-character"),
        pytest.param("", id="empty"),
        pytest.param("nowhere", id="missing"),
    ],
)
async def test_nothing_else_is_a_file(tree: Tree, path: str) -> None:
    """Links are not followed, nothing outside the tree exists, and no name is an error."""
    assert await tree.read(path) is None


async def test_a_file_too_large_is_refused(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory belongs to all runs of the machine."""
    monkeypatch.setattr(objects, "MAX_FILE_BYTES", 10)
    with pytest.raises(GitError, match="is not read"):
        await tree.read("a.py")


async def test_beginnings_are_those_of_the_files_read_one_by_one(tree: Tree) -> None:
    """Many files in one go give what each gives alone; what is no file gives nothing."""
    names = [os.fsdecode(name) for name in FILES]
    heads = await tree.heads([*names, "src", "none.py", "../a.py", "", "half\ud800"], 9)
    alone = {name: await tree.read(name) for name in names}
    assert heads == {name: content[:9] for name, content in alone.items() if content is not None}
    assert len(heads) == len(FILES) - 4


@pytest.mark.parametrize("portion", [1, 20, 100, 10**6])
async def test_beginnings_are_read_in_portions(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    """How much is held at once changes nothing; a file over the limit of all is left out."""
    monkeypatch.setattr(objects, "_PORTION_BYTES", portion)
    monkeypatch.setattr(objects, "MAX_FILE_BYTES", 20)
    heads = await tree.heads(["a.py", "src/b.py", "run.sh", "late-nul", "-option"], 100)
    assert heads == {name: await tree.read(name) for name in ("a.py", "run.sh", "-option")}


async def test_two_files_of_one_content_both_have_it(tmp_path: Path) -> None:
    """Git keeps equal contents once."""
    repo = BareRepo.create(tmp_path / "repo.git")
    tree = repo.repository.tree(repo.commit({b"a": b"same", b"b": b"same", b"empty": b""}))
    assert await tree.heads(["a", "b", "empty"], 10) == {"a": b"same", "b": b"same", "empty": b""}


async def test_beginnings_in_a_partial_copy_are_fetched(tmp_path: Path) -> None:
    """A mirror that lacks the contents gets them."""
    origin = BareRepo.create(tmp_path / "origin.git")
    commit = origin.commit({b"a": b"one", b"b": b"two"})
    mirrors = Mirrors(tmp_path / "mirrors")
    mirror = await mirrors.ready(1, Remote(origin.url), branches=["main"])
    assert await mirror.tree(commit).heads(["a", "b"], 2) == {"a": b"on", "b": b"tw"}


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        pytest.param("src", ("b.py", "deep/"), id="folder"),
        pytest.param("src/", ("b.py", "deep/"), id="slash"),
        pytest.param("src/deep", ("c.txt",), id="deep"),
        pytest.param("folder-link", (), id="link"),
        pytest.param("sub", (), id="submodule"),
        pytest.param("..", (), id="out"),
        pytest.param("../..", (), id="further-out"),
        pytest.param(".git", (), id="git"),
        pytest.param("a.py", (), id="file"),
        pytest.param("--help", (), id="option"),
        pytest.param("\ud83d", (), id="half-a-character"),
    ],
)
async def test_a_directory_lists_files_and_directories(
    tree: Tree, prefix: str, names: tuple[str, ...]
) -> None:
    """Links and submodules are not listed; what is no directory lists nothing."""
    assert await tree.list(prefix) == names


async def test_the_top_lists_what_can_be_read(tree: Tree) -> None:
    """Everything that `list` and `files` name, `read` reads."""
    top = await tree.list()
    assert "src/" in top
    assert not {"link", "folder-link", "up", "sub"} & set(top)
    assert await tree.list(".") == top
    for path in await tree.files():
        assert await tree.read(path) is not None


async def test_search_finds_lines_in_files_alone(tree: Tree) -> None:
    """Hits name their file and line, whatever the name; links and binaries are not searched."""
    hits = await tree.grep("secret")
    assert {(hit.path, hit.line) for hit in hits} == {
        ("a.py", 2), ("run.sh", 1), ("src/deep/c.txt", 1), ("with\nline break", 1),
        ("\udcff\udcfe", 1), ("\u6e2c.md", 1), ("late-nul", 1), ("late-nul", 3),
    }  # fmt: skip
    assert await tree.grep("passwd") == ()


@pytest.mark.parametrize(
    ("pattern", "prefix", "found"),
    [
        pytest.param("secret", "src", [("src/deep/c.txt", 1)], id="below-a-folder"),
        pytest.param("secret", "a.py", [("a.py", 2)], id="in-a-file"),
        pytest.param("secret", "*", [], id="name-is-no-pattern"),
        pytest.param("secret", "..", [], id="outside"),
        pytest.param("f\\(x\\)|x \\+ 1", "", [("src/b.py", 1), ("src/b.py", 2)], id="extended"),
        pytest.param("-e", "", [], id="like-an-option"),
        pytest.param("--open-files-in-pager=touch pwned", "", [], id="like-a-bad-option"),
        pytest.param("^page$", "app/[id]", [("app/[id]/page.tsx", 1)], id="brackets"),
    ],
)
async def test_search_takes_extended_expressions_and_literal_places(
    tree: Tree, pattern: str, prefix: str, found: list[tuple[str, int]]
) -> None:
    """The expression is ERE, the place is a path."""
    assert [(hit.path, hit.line) for hit in await tree.grep(pattern, prefix)] == found


@pytest.mark.parametrize("pattern", ["(", "[", "a{2,1}", "\0", "\ud83d"])
async def test_an_expression_that_is_none_is_an_error(tree: Tree, pattern: str) -> None:
    """The agent is told; nothing else breaks."""
    with pytest.raises(GitError):
        await tree.grep(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("((a{1,200}){1,200}){1,200}", id="counted-thrice"),
        pytest.param("(((x{0,255}){0,255}){0,255}){0,255}", id="counted-four-times"),
        pytest.param("(s*)*" * 150 + "\\1x", id="looking-back"),
        pytest.param("(e|e)*" * 100 + "$", id="alternatives"),
        pytest.param("(((((c*)*)*)*)*)*\\1z", id="stars-of-stars"),
    ],
)
async def test_no_expression_eats_the_machine(tree: Tree, pattern: str) -> None:
    """It finds, or it is given up; in either case soon, and with little memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    with contextlib.suppress(GitError):
        await tree.grep(pattern)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert after <= max(before, (objects.GREP_MEMORY + 100 * 2**20) // 1024)


@pytest.mark.parametrize(
    ("without", "paths"),
    [
        pytest.param((), {"a.py", "run.sh", "src/deep/c.txt"}, id="nothing"),
        pytest.param(("a.py",), {"run.sh", "src/deep/c.txt"}, id="a-file"),
        pytest.param(("src",), {"a.py", "run.sh"}, id="a-folder"),
        pytest.param(("a.p", "*.sh", "rc"), {"a.py", "run.sh", "src/deep/c.txt"}, id="no-pattern"),
        pytest.param(("with\nline break", "a.py"), {"run.sh", "src/deep/c.txt"}, id="odd"),
    ],
)
async def test_what_may_not_be_searched_is_not_opened(
    tree: Tree, without: tuple[str, ...], paths: set[str]
) -> None:
    """Files and folders by their exact names; they take no hit from others."""
    hits = await tree.grep("secret", "", without)
    assert {hit.path for hit in hits} & {"a.py", "run.sh", "src/deep/c.txt"} == paths
    assert not {hit.path for hit in hits} & set(without)


async def test_more_than_a_command_line_holds_is_refused(tree: Tree) -> None:
    """Rather no search than one of files that may not be read."""
    with pytest.raises(GitError, match="too many files that may not be searched"):
        await tree.grep("secret", "", [f"{n}" * 100 for n in range(4_000)])


async def test_a_tree_without_end_is_not_listed(tmp_path: Path) -> None:
    """A few objects can be a million million files: they are refused before memory is full."""
    repo = BareRepo.create(tmp_path / "repo.git")
    tree = repo.repository.tree(exploding(repo, 100, 6))
    for listing in (tree.files, lambda: tree.glob("**/x")):
        with pytest.raises(GitError, match="too many files"):
            await listing()
    assert len(await tree.list("000")) == 100


async def test_globbing_ends_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A glob over very many names is given up, and the loop is free meanwhile."""
    monkeypatch.setattr(globs, "GLOB_TIMEOUT_S", 0.2)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    with pytest.raises(GitError, match="longer than"):
        await matching(("a/" * 500 for _ in itertools.count()), "**/*a*b")
    ticking.cancel()
    assert ticks >= 3


async def test_a_search_that_finds_everything_is_cut(tmp_path: Path) -> None:
    """At most MAX_HITS hits, in the order of the tree, however much there is."""
    repo = BareRepo.create(tmp_path / "repo.git")
    commit = repo.commit({f"f{n:03}": b"x" * 900 + b"\n" + b"y\n" * 3000 for n in range(60)})
    hits = await repo.repository.tree(commit).grep(".")
    assert len(hits) == MAX_HITS
    assert hits[0].path == "f000"
    assert len(hits[0].text) == objects.MAX_HIT_CHARS


async def test_a_search_in_a_partial_copy_gets_all_files_at_once(tmp_path: Path) -> None:
    """One request instead of one a file: a thousand files would be a thousand round trips."""
    origin = BareRepo.create(tmp_path / "origin.git")
    old, new = origin.commits(
        [{f"f{n}": b"needle %d\n" % n for n in range(20)}, {"g": b"needle\n", "h": b"\n"}]
    )
    mirror = await Mirrors(tmp_path / "m").ready(1, Remote(origin.url), branches=["main"])
    tree = mirror.tree(old)
    for hits in await asyncio.gather(*(tree.grep("needle") for _ in range(3))):
        assert len(hits) == 20
    packs = list((mirror.git_dir / "objects" / "pack").glob("*.promisor"))
    assert len(packs) == 2
    missing = git("rev-list", "--objects", "--missing=print", new, cwd=mirror.git_dir)
    assert missing.count(b"\n?") == 2


@given(st.binary(max_size=60))
def test_whatever_a_search_prints_can_be_read(out: bytes) -> None:
    """A cut or odd output never breaks the reader."""
    assert all(hit.line >= 0 for hit in hits_of(re.sub(rb"\0[^\0]*\0", b"\x001\0", out), ""))


def test_a_hit_that_was_cut_is_left_out() -> None:
    """Half a line would be quoted as a whole one."""
    assert hits_of(b"c:a\x001\0one\nc:b\x002\0tw", "c:") == (GrepHit("a", 1, "one"),)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("/*.py", "deep/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("src/**", "src/x/y", True),
        ("src/**", "src", False),
        ("**/a.py", "a.py", True),
        ("**.py", "x/y/a.py", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("app/[id]/*", "app/[id]/page.tsx", True),
        ("app/[id]/*", "app/i/page.tsx", False),
        ("*a*b", "xaxxb", True),
        ("*a*b", "xaxxbc", False),
        ("a*a", "a", False),
        ("**/x/**/y", "x/x/a/y", True),
        ("", "a", False),
    ],
)
def test_globs_mean_what_agents_mean(pattern: str, path: str, matches: bool) -> None:
    """Stars stop at slashes, double stars do not, brackets are brackets."""
    assert glob_matcher(pattern)(path) is matches


@given(
    st.lists(st.sampled_from(["*", "?", "a", "b", "ab"]), max_size=7).map("".join),
    st.text("ab", min_size=1, max_size=8),
)
@example("a*ab*b", "aabab")
def test_one_name_matches_as_everywhere(pattern: str, name: str) -> None:
    """Within a name our globs agree with Python's own."""
    wanted = re.sub(r"\*+", "*", pattern)
    assert glob_matcher(f"/{pattern}")(name) is (bool(wanted) and fnmatch.fnmatchcase(name, wanted))


@settings(max_examples=20)
@given(st.sampled_from(["**/", "*a", "*", "a*", "?*", "**/a*/", "a**"]), st.integers(50, 200))
def test_no_glob_takes_long(piece: str, times: int) -> None:
    """A stranger's pattern on a stranger's path: never exponential."""
    matches = glob_matcher((piece * times)[:999] + "c")
    start = time.perf_counter()
    matches("a/" * 200 + "a" * 300 + "b")
    matches("a" * 4000)
    assert time.perf_counter() - start < 1
