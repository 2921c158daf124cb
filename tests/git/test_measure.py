"""Counting before a checkout (app/git/measure.py)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from app.git.measure import CheckoutLimits, CheckoutTooLarge, check_size
from app.git.mirror import Mirrors
from app.git.process import Remote
from app.git.worktrees import checkout
from tests.git.repos import LINK, SUBMODULE, BareRepo, Content, git


def exploding(repo: BareRepo, width: int, levels: int) -> str:
    """A commit of a few objects: each folder names the one below it `width` times."""
    below, mode, kind = "", "100644", "blob"
    below = git("hash-object", "-w", "--stdin", cwd=repo.path, stdin=b"x").decode().strip()
    for _ in range(levels):
        entries = "".join(f"{mode} {kind} {below}\t{n:03}\n" for n in range(width))
        below = git("mktree", cwd=repo.path, stdin=entries.encode()).decode().strip()
        mode, kind = "040000", "tree"
    commit = git("commit-tree", below, "-m", "m", cwd=repo.path).decode().strip()
    git("update-ref", "refs/heads/main", commit, cwd=repo.path)
    return commit


@pytest.fixture
def repo(tmp_path: Path) -> BareRepo:
    return BareRepo.create(tmp_path / "repo.git")


@pytest.mark.parametrize(
    ("files", "megabytes", "fits"),
    [
        pytest.param(1000, 1, True, id="exactly"),
        pytest.param(999, 1, False, id="one-file-more"),
    ],
)
async def test_every_appearance_counts(
    repo: BareRepo, files: int, megabytes: int, fits: bool
) -> None:
    """A folder named ten times is ten folders on disk."""
    commit = exploding(repo, 10, 3)
    limits = CheckoutLimits(files, megabytes)
    if fits:
        await check_size(repo.repository, commit, limits)
    else:
        with pytest.raises(CheckoutTooLarge, match="1,000 files, 999 at most"):
            await check_size(repo.repository, commit, limits)


async def test_a_million_million_files_are_counted_at_once(repo: BareRepo, tmp_path: Path) -> None:
    """Time and disk are those of the few objects; nothing is written and nothing is left."""
    commit = exploding(repo, 100, 6)
    started = time.monotonic()
    with pytest.raises(CheckoutTooLarge, match="1,000,000,000,000 files"):
        async with checkout(repo.repository, commit, tmp_path / "work"):
            raise AssertionError("checked out")
    assert time.monotonic() - started < 10
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("by_trees", [False, True], ids=["listed", "by-trees"])
async def test_depth_is_bounded(
    repo: BareRepo, by_trees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain of folders longer than any path is refused, however it is counted."""
    if by_trees:
        monkeypatch.setattr("app.git.measure.LISTING_OUTPUT", 1)
    await check_size(repo.repository, exploding(repo, 1, 51), CheckoutLimits())
    with pytest.raises(CheckoutTooLarge, match="over 50 folders deep"):
        await check_size(repo.repository, exploding(repo, 1, 52), CheckoutLimits())


@pytest.mark.parametrize(
    ("leaf", "words"),
    [
        pytest.param("", "1,010,101,010,101 folders", id="empty-folders"),
        pytest.param(f"160000 commit {'1' * 40}\tx\n", "1,000,000,000,000 files", id="submodules"),
    ],
)
async def test_what_holds_no_file_is_counted_too(repo: BareRepo, leaf: str, words: str) -> None:
    """Folders of nothing take as long to walk; a submodule is a folder on disk."""
    tree = git("mktree", "--missing", cwd=repo.path, stdin=leaf.encode()).decode().strip()
    for _ in range(6):
        entries = "".join(f"040000 tree {tree}\t{n:03}\n" for n in range(100))
        tree = git("mktree", cwd=repo.path, stdin=entries.encode()).decode().strip()
    commit = git("commit-tree", tree, "-m", "m", cwd=repo.path).decode().strip()
    with pytest.raises(CheckoutTooLarge, match=words):
        await check_size(repo.repository, commit, CheckoutLimits())


@pytest.mark.parametrize("is_partial", [False, True], ids=["whole", "partial"])
@pytest.mark.parametrize("by_trees", [False, True], ids=["listed", "by-trees"])
async def test_both_ways_of_counting_agree(
    repo: BareRepo,
    tmp_path: Path,
    by_trees: bool,
    is_partial: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same commit fits or does not, to the file and to the byte."""
    tree: dict[bytes, Content] = {
        b"a": b"x" * 400_000, b"b/a": b"x" * 400_000, b"b/c/d": b"y" * 200_000,
        b"b/l": (LINK, b"a"), b"n\n 5\tl": b"", b"\xff": b"1", b"s": (SUBMODULE, b"1" * 40),
    }  # fmt: skip
    commit = repo.commit(tree)
    repository = repo.repository
    if is_partial:
        repository = await Mirrors(tmp_path / "m").ready(1, Remote(repo.url), branches=["main"])
    if by_trees:
        monkeypatch.setattr("app.git.measure.LISTING_OUTPUT", 1)
    with pytest.raises(CheckoutTooLarge, match="7 files, 6 at most"):
        await check_size(repository, commit, CheckoutLimits(6, 10))
    with pytest.raises(CheckoutTooLarge, match="1 MB, 1 at most"):
        await check_size(repository, commit, CheckoutLimits(7, 1))
    await check_size(repository, commit, CheckoutLimits(7, 2))


async def test_bytes_count_as_often_as_they_are_written(repo: BareRepo) -> None:
    """One big file under many names fills the disk as often; submodules fill nothing."""
    big = b"x" * 600_000
    tree: dict[str, Content] = {
        "a": big,
        "b/c": big,
        "sub": (SUBMODULE, b"1" * 40),
        "l": (LINK, b"a"),
    }
    commit = repo.commit(tree)
    await check_size(repo.repository, commit, CheckoutLimits(megabytes=2))
    with pytest.raises(CheckoutTooLarge, match="1 MB, 1 at most"):
        await check_size(repo.repository, commit, CheckoutLimits(megabytes=1))


async def test_a_partial_copy_is_measured_too(repo: BareRepo, tmp_path: Path) -> None:
    """Contents that are not here come in one request before they are weighed."""
    commit = repo.commit({f"f{n}": b"%d" % n for n in range(20)})
    mirror = await Mirrors(tmp_path / "m").ready(1, Remote(repo.url), branches=["main"])
    await check_size(mirror, commit, CheckoutLimits(files=20))
    packs = list((mirror.git_dir / "objects" / "pack").glob("*.promisor"))
    assert len(packs) == 2


async def test_an_empty_commit_fits(repo: BareRepo) -> None:
    """Nothing is nothing."""
    commit = repo.commit({})
    await asyncio.gather(*(check_size(repo.repository, commit, CheckoutLimits(0, 0)) for _ in "ab"))
