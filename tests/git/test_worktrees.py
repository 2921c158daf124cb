"""Throwaway checkouts and pushes (app/git/worktrees.py) with repositories that mean harm."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import GitError
from app.git.mirror import Mirrors, Repository
from app.git.process import Remote
from app.git.worktrees import Identity, checkout, push, remote_sha, sweep_checkouts
from tests.git.repos import ENVIRONMENT, EXECUTABLE, LINK, SUBMODULE, BareRepo, Content, git

IDENTITY = Identity("Fixer", "fixer@example.com")
HOSTILE: dict[str, Content] = {
    ".gitattributes": b"* filter=evil diff=evil merge=evil text=auto eol=crlf ident\n"
    b"*.bin filter=lfs\n",
    ".gitmodules": b'[submodule "sub"]\n\tpath = sub\n\turl = file:///etc\n',
    ".lfsconfig": b"[lfs]\n\turl = http://127.0.0.1:1/\n",
    ".gitignore": b"ignored/\n*.log\n",
    "hooks/post-checkout": (EXECUTABLE, b"#!/bin/sh\ntouch pwned\n"),
    "big.bin": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
    "link": (LINK, b"/etc/passwd"),
    "folder": (LINK, b"../.."),
    "sub": (SUBMODULE, b"1" * 40),
    "crlf.txt": b"one\r\ntwo\r\n",
    "lf.txt": b"one\n$Id$\n",
    "a.py": b"x = 1\n",
}


@pytest.fixture
async def mirror(origin: BareRepo, remote: Remote, tmp_path: Path) -> Repository:
    origin.commit(HOSTILE)
    return await Mirrors(tmp_path / "mirrors").ready(1, remote, branches=["main"])


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


async def test_files_on_disk_are_the_bytes_of_the_commit(
    origin: BareRepo, mirror: Repository, work: Path, tmp_path: Path
) -> None:
    """No attribute, filter, hook, link, submodule or LFS pointer does anything, and a checkout
    that nobody touched has nothing to commit."""
    async with checkout(mirror, origin.tip(), work) as copy:
        for name, content in HOSTILE.items():
            data = content[1] if isinstance(content, tuple) else content
            if name != "sub":
                assert (copy.path / name).read_bytes() == data
        assert not (copy.path / "link").is_symlink()
        assert list((copy.path / "sub").iterdir()) == []
        assert await copy.commit_all("nothing", IDENTITY) is None
    assert not list(tmp_path.rglob("pwned"))


async def test_a_commit_holds_all_that_changed_and_nothing_ignored(
    origin: BareRepo, mirror: Repository, work: Path
) -> None:
    """New, changed, removed and executable files go in; what the repository ignores stays out."""
    async with checkout(mirror, origin.tip(), work) as copy:
        (copy.path / "a.py").write_bytes(b"x = 2\r\n")
        (copy.path / "new").mkdir()
        (copy.path / "new" / "file -x").write_bytes(b"new\n")
        (copy.path / "lf.txt").unlink()
        (copy.path / "debug.log").write_bytes(b"ignored")
        (copy.path / "ignored").mkdir()
        (copy.path / "ignored" / "x").write_bytes(b"ignored")
        sha = await copy.commit_all("# Fix it\n\nBecause\0.\n", IDENTITY)
    assert sha is not None
    diff = await mirror.diff(origin.tip(), sha)
    assert [(file.path, file.status) for file in diff.files] == [
        ("a.py", "modified"), ("lf.txt", "deleted"), ("new/file -x", "added"),
    ]  # fmt: skip
    assert await mirror.tree(sha).read("a.py") == b"x = 2\r\n"
    shown = git("log", "-1", "--format=%an|%ae|%cn|%B", sha, cwd=mirror.git_dir).decode()
    assert shown.strip() == "Fixer|fixer@example.com|Fixer|# Fix it\n\nBecause."


async def test_what_a_program_left_in_a_checkout_is_not_obeyed(
    origin: BareRepo, mirror: Repository, work: Path, tmp_path: Path
) -> None:
    """A replaced `.git`, new hooks, links out and repositories inside are neither run nor
    committed."""
    evil = tmp_path / "evil"
    git("init", "--quiet", str(evil), cwd=tmp_path)
    hook = evil / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\n")
    hook.chmod(0o755)
    async with checkout(mirror, origin.tip(), work) as copy:
        (copy.path / ".git").write_text(f"gitdir: {evil}/.git\n")
        (copy.path / "out").symlink_to("/etc")
        git("clone", "--quiet", "--no-checkout", str(origin.path), "inner", cwd=copy.path)
        (copy.path / "a.py").write_bytes(b"x = 3\n")
        sha = await copy.commit_all("fix", IDENTITY)
    assert sha is not None
    assert await mirror.changed_paths(origin.tip(), sha) == {"a.py"}
    assert not list(tmp_path.rglob("pwned"))


async def test_a_checkout_is_removed_whatever_happens(
    origin: BareRepo, mirror: Repository, work: Path
) -> None:
    """Also after an exception, a cancellation, and with read-only folders in it."""

    async def use(end: BaseException | None) -> None:
        async with checkout(mirror, origin.tip(), work) as copy:
            locked = copy.path / "cache" / "module"
            locked.mkdir(parents=True)
            (locked / "file").touch()
            locked.chmod(0o500)
            if end is not None:
                raise end
            await asyncio.sleep(60)

    with pytest.raises(ValueError, match="boom"):
        await use(ValueError("boom"))
    running = asyncio.create_task(use(None))
    await asyncio.sleep(0.3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(GitError):
        async with checkout(mirror, "f" * 40, work):
            raise AssertionError("there is no such commit")
    assert list(work.iterdir()) == []
    assert git("worktree", "list", cwd=mirror.git_dir).count(b"\n") == 1


async def test_checkouts_of_one_commit_do_not_meet(
    origin: BareRepo, mirror: Repository, work: Path
) -> None:
    """Two jobs on one repository have two folders and two histories."""

    async def fix(text: bytes) -> str | None:
        async with checkout(mirror, origin.tip(), work) as copy:
            (copy.path / "a.py").write_bytes(text)
            await asyncio.sleep(0)
            return await copy.commit_all("fix", IDENTITY)

    shas = await asyncio.gather(*(fix(b"x = %d\n" % n) for n in (5, 6, 7)))
    contents = [await mirror.tree(sha).read("a.py") for sha in shas if sha]
    assert contents == [b"x = 5\n", b"x = 6\n", b"x = 7\n"]


async def _commit(mirror: Repository, base: str, work: Path, text: bytes) -> str:
    async with checkout(mirror, base, work) as copy:
        (copy.path / "a.py").write_bytes(text)
        sha = await copy.commit_all("fix", IDENTITY)
    assert sha is not None
    return sha


async def test_a_push_moves_only_what_stands_where_it_was_seen(
    origin: BareRepo, mirror: Repository, remote: Remote, work: Path
) -> None:
    """The lease: new branches are new, the same push twice is one, somebody else's push wins."""
    base = origin.tip()
    one, two, three = [await _commit(mirror, base, work, b"%d\n" % n) for n in range(3)]
    branch = "mergeward/fix-1"
    await push(mirror, remote, sha=one, branch=branch, expected=None)
    await push(mirror, remote, sha=one, branch=branch, expected=None)
    assert await remote_sha(mirror, remote, branch) == one
    with pytest.raises(GitError):
        await push(mirror, remote, sha=two, branch=branch, expected=None)
    await push(mirror, remote, sha=two, branch=branch, expected=one)
    await push(mirror, remote, sha=two, branch=branch, expected=one)
    git("update-ref", f"refs/heads/{branch}", base, cwd=origin.path)
    with pytest.raises(GitError):
        await push(mirror, remote, sha=three, branch=branch, expected=two)
    assert await remote_sha(mirror, remote, branch) == base
    with pytest.raises(GitError):
        await push(mirror, remote, sha=three, branch="gone", expected=two)


@pytest.mark.parametrize(
    "branch",
    ["fix/1:main", "+main", "*", "HEAD:refs/heads/main", "main~1", "fix/..", "fix/x.lock", "-d",
     "--mirror", "", "a\nb", "HEAD", "@", "refs/heads/main", "a\0b", "\ud83d"],
)  # fmt: skip
async def test_a_push_goes_to_one_branch_by_its_whole_name(
    origin: BareRepo, mirror: Repository, remote: Remote, work: Path, branch: str
) -> None:
    """What could be read as a refspec, a pattern or an option is refused."""
    before = git("for-each-ref", cwd=origin.path)
    with pytest.raises(GitError, match="not a branch name"):
        await push(mirror, remote, sha=origin.tip(), branch=branch, expected=None)
    assert git("for-each-ref", cwd=origin.path) == before


async def test_a_branch_is_not_mistaken_for_another_that_ends_like_it(
    origin: BareRepo, mirror: Repository, remote: Remote
) -> None:
    """Git lists names by their end; only the exact one is the branch."""
    git("update-ref", "refs/heads/refs/heads/x", origin.tip(), cwd=origin.path)
    assert await remote_sha(mirror, remote, "x") is None
    assert await remote_sha(mirror, remote, "refs/heads/x") == origin.tip()


HOLDER = """
import asyncio, sys
from pathlib import Path
from app.git.mirror import Repository
from app.git.worktrees import checkout

async def main():
    async with checkout(Repository(Path(sys.argv[1])), sys.argv[2], Path(sys.argv[3])) as copy:
        print(copy.path, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_what_a_killed_process_left_is_swept(
    origin: BareRepo, mirror: Repository, work: Path
) -> None:
    """Only that: checkouts of living processes, this one's too, stay; so does what is not ours."""
    tip = origin.tip()
    command = [sys.executable, "-c", HOLDER, str(mirror.git_dir), tip, str(work)]
    async with checkout(mirror, tip, work) as mine:
        worker = await asyncio.create_subprocess_exec(
            *command, env=ENVIRONMENT, stdout=subprocess.PIPE
        )
        assert worker.stdout is not None
        theirs = Path((await worker.stdout.readline()).decode().strip())
        (work / "notes").mkdir()
        assert await sweep_checkouts(work) == 0
        assert (theirs / "a.py").exists()
        worker.kill()
        await worker.wait()
        assert await sweep_checkouts(work) == 1
        assert not theirs.exists()
        assert (mine.path / "a.py").exists()
        assert await mine.commit_all("nothing", IDENTITY) is None
    assert [path.name for path in work.iterdir()] == ["notes"]
    assert git("worktree", "list", cwd=mirror.git_dir).count(b"\n") == 1


async def test_a_folder_without_a_lock_is_a_leftover(work: Path) -> None:
    """Whoever makes a checkout locks first and removes the lock last."""
    (work / "fix-0" / "deep").mkdir(parents=True)
    (work / "fix-0" / "deep").chmod(0o500)
    (work / "fix-1.lock").touch()
    assert await sweep_checkouts(work) == 2
    assert list(work.iterdir()) == []
    assert await sweep_checkouts(work / "nowhere") == 0


async def test_sweeping_and_starting_at_once(
    origin: BareRepo, mirror: Repository, work: Path
) -> None:
    """A worker that starts removes nothing that another is just making."""

    async def use() -> None:
        async with checkout(mirror, origin.tip(), work) as copy:
            await asyncio.sleep(0.01)
            assert (copy.path / "a.py").read_bytes() == b"x = 1\n"

    async def sweep() -> None:
        for _ in range(30):
            await sweep_checkouts(work)
            await asyncio.sleep(0.005)

    await asyncio.gather(sweep(), sweep(), *(use() for _ in range(4)))
    assert list(work.iterdir()) == []


async def test_checkouts_and_fetches_of_one_mirror_do_not_meet(
    origin: BareRepo, remote: Remote, work: Path, tmp_path: Path
) -> None:
    """Git itself fails when it reads the notes of a checkout that another git is just making."""
    tip = origin.commit(HOSTILE)
    mirrors = Mirrors(tmp_path / "mirrors")
    mirror = await mirrors.ready(1, remote, branches=["main"])

    async def fix(number: int) -> None:
        async with checkout(mirror, tip, work) as copy:
            (copy.path / "a.py").write_bytes(b"%d\n" % number)
            assert await copy.commit_all("fix", IDENTITY) is not None

    async def fetch() -> None:
        await mirrors.ready(1, remote, branches=["main"])

    await asyncio.gather(*(job for n in range(8) for job in (fix(n), fetch())))
    assert list(work.iterdir()) == []
    left = {path.name for path in mirror.git_dir.glob("mergeward-*")}
    assert left == {"mergeward-in-use", "mergeward-whole-2"}
    assert not list((mirror.git_dir / "worktrees").iterdir())


async def test_folders_may_be_named_from_where_we_stand(
    origin: BareRepo, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default data directory is a relative path, and git is run in other folders."""
    tip = origin.commit(HOSTILE)
    monkeypatch.chdir(tmp_path)
    mirror = await Mirrors(Path("data/mirrors")).ready(1, remote, branches=["main"])
    async with checkout(mirror, tip, Path("data/work")) as copy:
        assert copy.path.parent == tmp_path / "data" / "work"
        (copy.path / "a.py").write_bytes(b"x = 2\n")
        assert await copy.commit_all("fix", IDENTITY) is not None
    assert list((tmp_path / "data" / "work").iterdir()) == []


async def test_a_mirror_that_vanished_gives_no_checkout(
    origin: BareRepo, mirror: Repository, work: Path
) -> None:
    """An error of git, which the job may try again, and nothing left."""
    shutil.rmtree(mirror.git_dir)
    with pytest.raises(GitError):
        async with checkout(mirror, origin.tip(), work):
            pass
    assert not work.exists() or list(work.iterdir()) == []


async def test_a_mirror_is_not_evicted_while_a_checkout_stands_on_it(
    origin: BareRepo, remote: Remote, work: Path, tmp_path: Path
) -> None:
    """The fixer works for many minutes; its commit needs the mirror at the end."""
    origin.commit(HOSTILE)
    mirrors = Mirrors(tmp_path / "small", quota_bytes=1)
    mirror = await mirrors.ready(1, remote, branches=["main"])
    async with checkout(mirror, origin.tip(), work) as copy:
        del mirror
        await mirrors.ready(2, remote, branches=["main"])
        assert await mirrors.keep_quota() == (2,)
        (copy.path / "a.py").write_bytes(b"x = 2\n")
        assert await copy.commit_all("fix", IDENTITY) is not None
    del copy
    assert await mirrors.keep_quota() == (1,)


async def test_a_checkout_is_removed_also_when_cancelled_twice(
    origin: BareRepo, mirror: Repository, work: Path
) -> None:
    """Impatience does not leave a folder behind."""
    entered = asyncio.Event()

    async def use() -> None:
        async with checkout(mirror, origin.tip(), work):
            entered.set()
            await asyncio.sleep(60)

    running = asyncio.create_task(use())
    await entered.wait()
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert list(work.iterdir()) == []
