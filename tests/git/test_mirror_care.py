"""Mirrors on a machine where disks fill, files rot and workers die (app/git/mirror.py)."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.errors import GitError
from app.git.mirror import DiffTooLarge, Mirrors
from app.git.mirror_folder import IN_USE
from app.git.process import Remote
from tests.git.repos import ENVIRONMENT, BareRepo, git
from tests.git.test_measure import exploding


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "mirrors"


def _write(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def _each_pack(change: Callable[[bytes], bytes], suffix: str = ".pack") -> Callable[[Path], None]:
    def damage(mirror: Path) -> None:
        for pack in (mirror / "objects" / "pack").glob(f"*{suffix}"):
            _write(pack, change(pack.read_bytes()))

    return damage


def _scrambled(pack: bytes) -> bytes:
    """Head and checksum as they were, everything between them changed."""
    return pack[:12] + bytes(byte ^ 0x55 for byte in pack[12:-20]) + pack[-20:]


def _a_file_instead(mirror: Path) -> None:
    shutil.rmtree(mirror)
    mirror.write_text("not a mirror")


def _objects_gone(mirror: Path) -> None:
    shutil.rmtree(mirror / "objects")


def _refs_gone(mirror: Path) -> None:
    shutil.rmtree(mirror / "refs")


def _removed(name: str) -> Callable[[Path], None]:
    return lambda mirror: (mirror / name).unlink()


def _holds(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda mirror: _write(mirror / name, content)


DAMAGE: list[tuple[str, Callable[[Path], None]]] = [
    ("vanished", shutil.rmtree),
    ("a-file-instead", _a_file_instead),
    ("objects-gone", _objects_gone),
    ("refs-gone", _refs_gone),
    ("packs-cut", _each_pack(lambda pack: pack[: len(pack) // 2])),
    ("packs-empty", _each_pack(lambda _: b"")),
    ("packs-scrambled", _each_pack(_scrambled)),
    ("packs-of-noise", _each_pack(lambda pack: os.urandom(len(pack)))),
    ("indexes-of-noise", _each_pack(lambda _: b"x" * 100, ".idx")),
    ("no-head", _removed("HEAD")),
    ("head-of-noise", _holds("HEAD", b"noise")),
    ("no-settings", _removed("config")),
    ("settings-of-noise", _holds("config", b"[core\nx")),
    ("ref-empty", _holds("refs/heads/main", b"")),
    ("ref-to-nowhere", _holds("refs/heads/main", b"f" * 40 + b"\n")),
    ("packed-refs-of-noise", _holds("packed-refs", b"noise\n")),
    ("shallow", _holds("shallow", b"f" * 40 + b"\n")),
]


@pytest.mark.parametrize("is_new", [True, False], ids=["new-commit", "same-commit"])
@pytest.mark.parametrize("damage", [what for _, what in DAMAGE], ids=[name for name, _ in DAMAGE])
async def test_a_broken_mirror_is_made_anew(
    origin: BareRepo, remote: Remote, root: Path, damage: Callable[[Path], None], is_new: bool
) -> None:
    """Whatever is broken: at the latest, the second try of a job has all it needs."""
    old, now, new = origin.commits([{"a/b": b"%d\n" % n, "c": b"c\n"} for n in range(3)])
    git("update-ref", "refs/heads/main", now, cwd=origin.path)
    mirrors = Mirrors(root)
    mirror = await mirrors.ready(1, remote, branches=["main"])
    await mirror.tree(now).grep("x")
    if is_new:
        git("update-ref", "refs/heads/main", new, cwd=origin.path)
    head = new if is_new else now
    damage(mirror.git_dir)

    async def job() -> bytes | None:
        again = await mirrors.ready(1, remote, branches=["main"], commits=[old])
        assert await again.resolve("main") == head
        await again.diff(await again.merge_base(old, head), head)
        return await again.tree(head).read("a/b")

    try:
        content = await job()
    except GitError:
        content = await job()
    assert content == (b"2\n" if is_new else b"1\n")


async def test_a_failure_of_the_remote_is_not_the_mirrors(
    origin: BareRepo, remote: Remote, root: Path
) -> None:
    """A branch or a repository that is gone costs no sound mirror its contents."""
    origin.commit({"a": b"1"})
    mirrors = Mirrors(root)
    mirror = await mirrors.ready(1, remote, branches=["main"])
    (mirror.git_dir / "mark").touch()
    for address, branch in ((remote, "gone"), (Remote(f"{origin.url}-gone"), "main")):
        with pytest.raises(GitError):
            await mirrors.ready(1, address, branches=[branch])
    with pytest.raises(GitError):
        await mirrors.ready(1, remote, commits=["f" * 40])
    with pytest.raises(GitError):
        await mirror.changed_paths("f" * 40, origin.tip())
    await mirrors.ready(1, remote, branches=["main"])
    assert (mirror.git_dir / "mark").exists()


async def test_a_commit_that_git_calls_corrupt_costs_one_mirror_an_hour(
    origin: BareRepo, remote: Remote, root: Path
) -> None:
    """Whoever can push such a commit can't make us fetch all of the repository again and again."""
    origin.commit({"a": b"1"})
    bad = git(
        "hash-object", "-t", "tree", "-w", "--literally", "--stdin",
        cwd=origin.path, stdin=b"100644 a\0short",
    ).decode().strip()  # fmt: skip
    commit = git("commit-tree", bad, "-m", "m", cwd=origin.path).decode().strip()
    mirrors, marks = Mirrors(root), []
    for _ in range(3):
        mirror = await mirrors.ready(1, remote, branches=["main"])
        marks.append((mirror.git_dir / "mark").exists())
        (mirror.git_dir / "mark").touch()
        shutil.copytree(origin.path / "objects", mirror.git_dir / "objects", dirs_exist_ok=True)
        with pytest.raises(GitError, match="tree"):
            await mirror.diff(origin.tip(), commit)
    assert marks == [False, False, True]


async def test_mirrors_go_when_there_is_no_room_but_not_while_they_are_read(
    origin: BareRepo, remote: Remote, root: Path
) -> None:
    """A tree is enough to keep its mirror; once nobody has one, the next job makes room."""
    tip = origin.commit({"a": b"1"})
    mirrors = Mirrors(root, quota_bytes=1)
    tree = (await mirrors.ready(1, remote, branches=["main"])).tree(tip)
    second = await mirrors.ready(2, remote, branches=["main"])
    assert await tree.read("a") == b"1"
    del tree, second
    gc.collect()
    third = await mirrors.ready(3, remote, branches=["main"])
    assert sorted(path.name for path in root.glob("*.git")) == ["3.git"]
    assert await third.tree(tip).read("a") == b"1"
    assert (await mirrors.ready(1, remote, branches=["main"])).git_dir.exists()


async def test_room_is_looked_after_now_and_then(
    origin: BareRepo, remote: Remote, root: Path
) -> None:
    """Weighing is for a new mirror, and else once a minute: a warm one is ready at once."""
    origin.commit({"a": b"1"})
    mirrors = Mirrors(root, quota_bytes=1)
    for number in (1, 2):
        await mirrors.ready(number, remote, branches=["main"])
    gc.collect()
    warm = await mirrors.ready(2, remote, branches=["main"])
    (root / "1.git").mkdir(exist_ok=True)
    again = await mirrors.ready(2, remote, branches=["main"])
    assert (root / "1.git").exists()
    assert await mirrors.keep_quota() == (1,)
    assert await Mirrors(root).keep_quota() == ()
    assert warm == again


WORKER = """
import asyncio, sys
from pathlib import Path
from app.git.mirror import Mirrors
from app.git.process import Remote

async def job(mirrors, remote, number):
    mirror = await mirrors.ready(number % 2, remote, branches=["main"], pulls=[number])
    head = await mirror.resolve(f"refs/pull/{number}/head")
    await asyncio.sleep(0.02)
    base = await mirror.merge_base(await mirror.resolve("main"), head)
    diff = await mirror.diff(base, head)
    assert [file.path for file in diff.files] == ["a"], diff
    return await mirror.tree(head).read("a")

async def main():
    mirrors, remote = Mirrors(Path(sys.argv[1]), quota_bytes=1), Remote(sys.argv[2])
    for _ in range(3):
        numbers = range(1, 7)
        read = await asyncio.gather(*(job(mirrors, remote, n) for n in numbers))
        assert read == [b"%d" % n for n in numbers], read

asyncio.run(main())
"""


async def test_processes_share_mirrors_that_are_evicted_all_the_time(
    origin: BareRepo, remote: Remote, root: Path
) -> None:
    """No room at all, three processes, each with six jobs at once: nobody loses what it reads."""
    base = origin.commit({"a": b"0"})
    for number in range(1, 7):
        ref = f"refs/pull/{number}/head"
        origin.commit({"a": b"%d" % number}, parent=base, ref=ref)
    workers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WORKER, str(root), remote.url,
            env=ENVIRONMENT, stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]  # fmt: skip
    said = await asyncio.gather(*(worker.communicate() for worker in workers))
    assert [worker.returncode for worker in workers] == [0] * 3, said


async def test_threads_share_mirrors(origin: BareRepo, remote: Remote, root: Path) -> None:
    """One `Mirrors` serves the loops of several threads."""
    tip, mirrors, found = origin.commit({"a": b"1"}), Mirrors(root), []

    async def job() -> str:
        mirror = await mirrors.ready(1, remote, branches=["main"])
        return await mirror.resolve("main")

    async def jobs() -> None:
        found.extend(await asyncio.gather(*(job() for _ in range(3))))

    threads = [threading.Thread(target=lambda: asyncio.run(jobs())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert found == [tip] * 9


@pytest.mark.parametrize("after_s", [0.0, 0.002, 0.01, 0.03, 0.06])
async def test_a_cancelled_job_leaves_a_mirror_that_works(
    origin: BareRepo, remote: Remote, root: Path, after_s: float
) -> None:
    """At whatever moment a run is superseded, the next one gets what it asks for."""
    tip = origin.commit({"a": b"1"})
    mirrors = Mirrors(root)
    first = asyncio.create_task(mirrors.ready(1, remote, branches=["main"]))
    await asyncio.sleep(after_s)
    first.cancel()
    second = await mirrors.ready(1, remote, branches=["main"])
    await asyncio.gather(first, return_exceptions=True)
    assert await second.tree(tip).read("a") == b"1"


async def test_the_address_is_the_askers(origin: BareRepo, root: Path, tmp_path: Path) -> None:
    """A repository that was renamed is read where it is now; no file of the mirror says where."""
    old, new = origin.commits([{"a": b"1"}, {"a": b"2"}])
    mirror = await Mirrors(root).ready(1, Remote(origin.url), commits=[old])
    moved = BareRepo(origin.path.rename(tmp_path / "moved.git"))
    mirror = await Mirrors(root).ready(1, Remote(moved.url), commits=[new])
    assert await mirror.tree(new).read("a") == b"2"
    assert "origin.git" not in (mirror.git_dir / "config").read_text()
    assert "moved.git" not in (mirror.git_dir / "config").read_text()


async def test_many_packs_are_found_by_one_index(
    origin: BareRepo, remote: Remote, root: Path
) -> None:
    """Each fetch adds a pack; look-ups do not become slower with each."""
    tip = origin.commit({"a": b"1"})
    mirror = await Mirrors(root).ready(1, remote, branches=["main"])
    packs = mirror.git_dir / "objects" / "pack"
    real = next(packs.glob("*.pack"))
    for number in range(60):
        for file in (real, real.with_suffix(".idx")):
            shutil.copy(file, packs / f"pack-{number:040}{file.suffix}")
    mirror = await Mirrors(root).ready(1, remote, branches=["main"])
    assert (packs / "multi-pack-index").exists()
    written = (packs / "multi-pack-index").stat().st_mtime_ns
    mirror = await Mirrors(root).ready(1, remote, branches=["main"])
    assert (packs / "multi-pack-index").stat().st_mtime_ns == written
    assert await mirror.tree(tip).read("a") == b"1"


async def test_a_change_that_has_no_end_is_refused(
    origin: BareRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the memory git wants for it, and by its length."""
    base, head = origin.commit({"a": b"1"}), exploding(origin, 100, 6)
    with pytest.raises(DiffTooLarge, match="smaller pull requests"):
        await origin.repository.diff(base, head)
    head = origin.commit({"a": b"2"}, parent=base, ref="refs/heads/small")
    size = len(await origin.repository.raw_diff(base, head))
    monkeypatch.setattr("app.git.mirror.MAX_DIFF_BYTES", size)
    assert (await origin.repository.diff(base, head)).files
    monkeypatch.setattr("app.git.mirror.MAX_DIFF_BYTES", size - 1)
    with pytest.raises(DiffTooLarge, match="smaller pull requests"):
        await origin.repository.diff(base, head)


async def test_a_mirror_says_when_it_was_used_last(
    origin: BareRepo, remote: Remote, root: Path
) -> None:
    """What eviction goes by changes with each use."""
    origin.commit({"a": b"1"})
    mirror = await Mirrors(root).ready(1, remote, branches=["main"])
    os.utime(mirror.git_dir / IN_USE, (1, 1))
    again = await Mirrors(root).ready(1, remote)
    assert (again.git_dir / IN_USE).stat().st_mtime > 1
