"""Room for mirrors (app/git/quota.py), with folders that only look like mirrors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.git.locks import Hold, take
from app.git.mirror_folder import IN_USE
from app.git.quota import keep_quota, lock_path

MEGABYTE = 1 << 20


def mirror(root: Path, repository_id: int, *, megabytes: int = 1, used_at: float = 0) -> Path:
    """A folder of that size, used at that second; 0: never held."""
    path = root / f"{repository_id}.git"
    (path / "objects").mkdir(parents=True)
    (path / "objects" / "pack").write_bytes(b"x" * (megabytes * MEGABYTE - 64 * 1024))
    if used_at:
        (path / IN_USE).touch()
        os.utime(path / IN_USE, (used_at, used_at))
    return path


def left(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


@pytest.mark.parametrize(
    ("quota", "removed"),
    [
        pytest.param(10, (), id="room-for-all"),
        pytest.param(6, (), id="just-fits"),
        pytest.param(5, (2,), id="the-oldest-goes"),
        pytest.param(3, (2, 1), id="then-the-next"),
        pytest.param(0, (2, 1, 3), id="nothing-may-stay"),
    ],
)
def test_the_least_recently_used_go_until_the_rest_fits(
    tmp_path: Path, quota: int, removed: tuple[int, ...]
) -> None:
    """Their own age decides, not their size, and no more than needed are removed."""
    for number, used_at in ((1, 200.0), (2, 100.0), (3, 300.0)):
        mirror(tmp_path, number, megabytes=2, used_at=used_at)
    assert keep_quota(tmp_path, quota * MEGABYTE) == removed
    assert left(tmp_path) == [f"{n}.git" for n in (1, 2, 3) if n not in removed]


def test_one_in_use_stays_whatever_it_takes(tmp_path: Path) -> None:
    """Others go in its place; when none is left, the quota is exceeded and no reader notices."""
    used = mirror(tmp_path, 1, megabytes=4, used_at=100)
    mirror(tmp_path, 2, megabytes=1, used_at=200)
    hold = Hold(used / IN_USE)
    assert keep_quota(tmp_path, MEGABYTE) == (2,)
    assert (used / "objects" / "pack").exists()
    del hold
    assert keep_quota(tmp_path, MEGABYTE) == (1,)
    assert left(tmp_path) == []


def test_one_that_is_being_filled_stays(tmp_path: Path) -> None:
    """Whoever has a mirror's lock works on it."""
    mirror(tmp_path, 1, used_at=100)
    handle = take(lock_path(tmp_path, 1))
    assert handle is not None
    assert keep_quota(tmp_path, 0) == ()
    os.close(handle)
    assert keep_quota(tmp_path, 0) == (1,)


def test_one_that_nobody_ever_used_is_the_oldest(tmp_path: Path) -> None:
    """A mirror whose maker died before anybody read from it."""
    mirror(tmp_path, 1, used_at=100)
    mirror(tmp_path, 2)
    assert keep_quota(tmp_path, MEGABYTE) == (2,)


def test_a_removal_that_was_cut_off_is_ended(tmp_path: Path) -> None:
    """What was moved away to be removed, or was never put in place, goes; strangers stay."""
    (tmp_path / "1.00ff.gone" / "objects").mkdir(parents=True)
    (tmp_path / "2.00ff.new").mkdir()
    (tmp_path / "notes.git").mkdir()
    busy = take(lock_path(tmp_path, 3))
    (tmp_path / "3.00ff.new").mkdir()
    assert busy is not None
    keep_quota(tmp_path, 0)
    names = left(tmp_path)
    assert "notes.git" in names
    assert "3.00ff.new" in names
    assert not {"1.00ff.gone", "2.00ff.new"} & set(names)
    os.close(busy)


def test_no_folder_is_no_mirrors(tmp_path: Path) -> None:
    """Before the first review there is nothing to weigh."""
    assert keep_quota(tmp_path / "nowhere", 0) == ()
