"""The fixer's jail (app/fixer/workspace.py)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.errors import GitError
from app.fixer.workspace import MAX_FILE_BYTES, EditableTree, EditRefused
from app.git.worktrees import checkout
from tests.git.repos import EXECUTABLE, LINK, BareRepo, Content

COMMITTED: dict[str, Content] = {
    "app/a.py": b"one\ntwo\ntwo\n",
    "run.sh": (EXECUTABLE, b"echo one\n"),
    ".gitignore": b"*.log\n",
    "committed-link": (LINK, b"../outside.txt"),
    "app/committed-link": (LINK, b"/etc"),
    "app/bytes.txt": b"caf\xe9\n",
}


@pytest.fixture
async def tree(tmp_path: Path) -> AsyncIterator[EditableTree]:
    """A checkout as the fixer gets it, in which a program left links on disk too."""
    origin = BareRepo.create(tmp_path / "origin.git")
    commit = origin.commit(COMMITTED)
    (tmp_path / "outside.txt").write_text("outside\n")
    async with checkout(origin.repository, commit, tmp_path / "work") as copy:
        (copy.path / "link").symlink_to(tmp_path)
        (copy.path / "app" / "file-link").symlink_to(tmp_path / "outside.txt")
        (copy.path / "meta").symlink_to(".git")
        os.mkfifo(copy.path / "pipe")
        (copy.path / "debug.log").write_text("one in a log\n")
        yield EditableTree(copy.path)


OUTSIDE = [
    pytest.param("../outside.txt", id="dot-dot"),
    pytest.param("app/../../outside.txt", id="dot-dot-inside"),
    pytest.param("/etc/passwd", id="absolute"),
    pytest.param("link/outside.txt", id="through-a-linked-folder"),
    pytest.param("app/file-link", id="linked-file"),
    pytest.param(".git/config", id="git"),
    pytest.param(".GIT/config", id="git-other-case"),
    pytest.param(".git./config", id="git-trailing-dot"),
    pytest.param("app/.git/hooks/x", id="nested-git"),
    pytest.param("a\0b", id="nul"),
    pytest.param("", id="empty"),
    pytest.param("app//a.py", id="empty-part"),
    pytest.param("committed-link", id="link-of-the-commit"),
    pytest.param("app/committed-link/passwd", id="through-a-link-of-the-commit"),
    pytest.param("meta/config", id="link-to-git"),
    pytest.param("git~1/config", id="git-short-name"),
    pytest.param("app", id="directory"),
    pytest.param("app/a.py/x", id="below-a-file"),
    pytest.param("a\ud83d", id="half-a-character"),
    pytest.param("x" * 300, id="name-too-long"),
]


@pytest.mark.parametrize("path", OUTSIDE)
async def test_nothing_outside_is_read(tree: EditableTree, path: str) -> None:
    """Only regular files of the checkout can be read."""
    assert await tree.read(path) is None


@pytest.mark.parametrize("path", OUTSIDE)
async def test_nothing_outside_is_written(tree: EditableTree, tmp_path: Path, path: str) -> None:
    """A refused write leaves everything as it was."""
    before = sorted(str(item) for item in tmp_path.rglob("*"))
    with pytest.raises(EditRefused):
        await tree.write(path, "x")
    assert sorted(str(item) for item in tmp_path.rglob("*")) == before
    assert (tmp_path / "outside.txt").read_text() == "outside\n"
    assert (tree.root / "committed-link").read_text() == "../outside.txt"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(".github/workflows/ci.yml", id="workflow"),
        pytest.param(".GitHub/Workflows/ci.yml", id="workflow-other-case"),
        pytest.param(".github/mergeward.yml", id="our-policy"),
    ],
)
async def test_what_judges_a_fix_is_read_only(tree: EditableTree, path: str) -> None:
    """A fix can't change the checks it must pass."""
    with pytest.raises(EditRefused, match="can't be changed"):
        await tree.write(path, "x")


@pytest.mark.parametrize(
    ("old", "times"),
    [
        pytest.param("two", 2, id="twice"),
        pytest.param("three", 0, id="nowhere"),
        pytest.param("", 0, id="empty"),
    ],
)
async def test_an_edit_must_be_unambiguous(tree: EditableTree, old: str, times: int) -> None:
    """An edit names its place exactly once or is refused with what to do."""
    with pytest.raises(EditRefused, match=f"occurs {times} times"):
        await tree.edit("app/a.py", old, "x")
    assert await tree.read("app/a.py") == b"one\ntwo\ntwo\n"


async def test_an_edit_keeps_everything_else(tree: EditableTree) -> None:
    """Only the named text changes."""
    await tree.edit("app/a.py", "one\n", "1\r\n")
    assert await tree.read("app/a.py") == b"1\r\ntwo\ntwo\n"


async def test_what_was_not_edited_keeps_its_bytes_and_mode(tree: EditableTree) -> None:
    """Text that is not UTF-8 survives an edit beside it, and a program stays executable."""
    await tree.write("app/bytes.txt", "caf\udce9\nnew\n")
    assert await tree.read("app/bytes.txt") == b"caf\xe9\nnew\n"
    await tree.edit("run.sh", "one", "two")
    assert (tree.root / "run.sh").stat().st_mode & 0o777 == 0o755
    with pytest.raises(EditRefused, match="half a character"):
        await tree.write("app/a.py", "\ud83d")


async def test_writing_does_not_reach_other_names_of_a_file(
    tree: EditableTree, tmp_path: Path
) -> None:
    """A second name of an outside file, made by a program, is replaced and not written through."""
    (tree.root / "hard").hardlink_to(tmp_path / "outside.txt")
    await tree.write("hard", "mine\n")
    assert (tmp_path / "outside.txt").read_text() == "outside\n"
    assert await tree.read("hard") == b"mine\n"


async def test_a_new_file_makes_its_folders(tree: EditableTree) -> None:
    """Writing is creating, too, up to a size."""
    await tree.write("new/deep/file.py", "x\n")
    assert await tree.read("new/deep/file.py") == b"x\n"
    with pytest.raises(EditRefused, match="is over"):
        await tree.write("big", "x" * (MAX_FILE_BYTES + 1))


async def test_search_sees_files_but_neither_links_nor_git(tree: EditableTree) -> None:
    """Listing, globbing and searching stay in the jail too."""
    assert await tree.list() == (".gitignore", "app/", "debug.log", "pipe", "run.sh")
    assert await tree.list("app") == ("a.py", "bytes.txt")
    assert await tree.list("link") == await tree.list("..") == await tree.list("meta") == ()
    assert await tree.glob("**/*.py") == ("app/a.py",)
    assert not [path for path in await tree.glob("**") if "link" in path or "pipe" in path]
    await tree.write("new.py", "two new\n")
    assert [(hit.path, hit.line) for hit in await tree.grep("two")] == [
        ("app/a.py", 2),
        ("app/a.py", 3),
        ("new.py", 1),
    ]
    assert await tree.grep("outside") == ()
    assert await tree.grep("etc") == ()


@pytest.mark.parametrize(
    ("pattern", "prefix", "found"),
    [
        pytest.param("^(one|two)$", "app", 3, id="extended"),
        pytest.param("two", "app/a.py", 2, id="one-file"),
        pytest.param("t.o", "", 2, id="dot"),
        pytest.param("one", "..", 0, id="outside"),
        pytest.param("one", "link", 0, id="through-a-link"),
        pytest.param("--open-files-in-pager=touch pwned", "", 0, id="like-an-option"),
        pytest.param("one", "*", 0, id="place-is-no-pattern"),
    ],
)
async def test_search_means_the_same_as_in_a_review(
    tree: EditableTree, pattern: str, prefix: str, found: int
) -> None:
    """Extended expressions by git itself: a stranger's pattern never runs in this process."""
    assert len(await tree.grep(pattern, prefix)) == found
    assert not (tree.root / "pwned").exists()


async def test_an_expression_that_is_none_is_an_error(tree: EditableTree) -> None:
    """As for a commit's tree."""
    with pytest.raises(GitError):
        await tree.grep("(")
