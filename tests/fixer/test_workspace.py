"""The fixer's jail (app/fixer/workspace.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.fixer.workspace import EditableTree, EditRefused


@pytest.fixture
def tree(tmp_path: Path) -> EditableTree:
    root = tmp_path / "checkout"
    (root / "app").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("secret")
    (root / "app" / "a.py").write_text("one\ntwo\ntwo\n")
    (tmp_path / "outside.txt").write_text("outside")
    (root / "link").symlink_to(tmp_path)
    (root / "app" / "file-link").symlink_to(tmp_path / "outside.txt")
    return EditableTree(root)


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
    assert (tmp_path / "outside.txt").read_text() == "outside"


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


async def test_search_sees_files_but_neither_links_nor_git(tree: EditableTree) -> None:
    """Listing, globbing and searching stay in the jail too."""
    assert await tree.list() == ("app/",)
    assert await tree.glob("**/*") == ("app/a.py",)
    assert [(hit.path, hit.line) for hit in await tree.grep("two")] == [
        ("app/a.py", 2),
        ("app/a.py", 3),
    ]
    assert await tree.grep("outside") == ()
