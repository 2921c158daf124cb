"""Mirrors and what is asked of them (app/git/mirror.py), against a bare repository on this disk."""

from __future__ import annotations

import asyncio
import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import GitError
from app.git.mirror import Mirrors, open_local
from app.git.process import Remote
from tests.git.repos import ENVIRONMENT, BareRepo, git


@pytest.fixture
def mirrors(tmp_path: Path) -> Mirrors:
    return Mirrors(tmp_path / "mirrors")


async def test_a_mirror_has_what_was_asked_for_and_no_contents(
    origin: BareRepo, remote: Remote, mirrors: Mirrors
) -> None:
    """Tips of branches and pull requests come; file contents only when they are read."""
    main, head = origin.commits([{"a.py": b"one\n"}, {"a.py": b"two\n"}], ref="refs/heads/main")
    origin.commit({"a.py": b"fork\n"}, parent=main, ref="refs/pull/7/head")
    mirror = await mirrors.ready(1, remote, branches=["main"], pulls=[7])
    assert await mirror.resolve(mirrors.branch_ref("main")) == head
    missing = git("rev-list", "--all", "--objects", "--missing=print", cwd=mirror.git_dir)
    assert missing.count(b"\n?") == 3
    assert await mirror.tree(head).read("a.py") == b"two\n"
    diff = await mirror.diff(main, origin.tip("refs/pull/7/head"))
    assert [(file.path, file.additions) for file in diff.files] == [("a.py", 1)]


async def test_a_commit_that_is_not_here_is_not_fetched_to_find_out(
    origin: BareRepo, remote: Remote, mirrors: Mirrors
) -> None:
    """`has` asks nobody else; `ready` gets what is named by its id."""
    old, new = origin.commits([{"a": b"1"}, {"a": b"2"}])
    mirror = await mirrors.ready(1, remote, commits=[old])
    assert await mirror.has(old)
    assert not await mirror.has(new)
    await mirrors.ready(1, remote, commits=[new])
    assert await mirror.has(new)


async def test_a_moved_branch_is_followed_also_backwards(
    origin: BareRepo, remote: Remote, mirrors: Mirrors
) -> None:
    """A force-push replaces what the mirror held."""
    old, new = origin.commits([{"a": b"1"}, {"a": b"2"}])
    mirror = await mirrors.ready(1, remote, branches=["main"])
    git("update-ref", "refs/heads/main", old, cwd=origin.path)
    await mirrors.ready(1, remote, branches=["main"])
    assert await mirror.resolve("main") == old
    assert await mirror.has(new)


async def test_workers_of_one_process_share_a_mirror(
    origin: BareRepo, remote: Remote, mirrors: Mirrors
) -> None:
    """Many at once make one mirror, and each gets what it asked for."""
    shas = origin.commits([{"a": b"%d" % n} for n in range(6)])
    for number, sha in enumerate(shas, start=1):
        git("update-ref", f"refs/pull/{number}/head", sha, cwd=origin.path)
    found = await asyncio.gather(
        *(mirrors.ready(1, remote, branches=["main"], pulls=[n]) for n in range(1, 7))
    )
    assert len({mirror.git_dir for mirror in found}) == 1
    for number, sha in enumerate(shas, start=1):
        assert await found[0].resolve(f"refs/pull/{number}/head") == sha


WORKER = """
import asyncio, sys
from pathlib import Path
from app.git.mirror import Mirrors
from app.git.process import Remote
mirror = asyncio.run(Mirrors(Path(sys.argv[1])).ready(1, Remote(sys.argv[2]), branches=["main"]))
print(asyncio.run(mirror.resolve("main")))
"""


async def test_processes_of_one_machine_share_a_mirror(
    origin: BareRepo, remote: Remote, tmp_path: Path
) -> None:
    """The lock file holds among processes: nobody begins a mirror that another is making."""
    tip = origin.commit({"a": b"1"})
    command = [sys.executable, "-c", WORKER, str(tmp_path / "mirrors"), remote.url]
    workers = [
        await asyncio.create_subprocess_exec(*command, env=ENVIRONMENT, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    answers = await asyncio.gather(*(worker.communicate() for worker in workers))
    assert [out.decode().strip() for out, _ in answers] == [tip] * 3


async def test_a_mirror_waits_for_the_process_that_holds_it(
    origin: BareRepo, remote: Remote, mirrors: Mirrors, tmp_path: Path
) -> None:
    """Nothing is touched while another process works on it, and waiting can be given up."""
    origin.commit({"a": b"1"})
    (tmp_path / "mirrors").mkdir()
    with (tmp_path / "mirrors" / "1.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = asyncio.create_task(mirrors.ready(1, remote, branches=["main"]))
        given_up = asyncio.create_task(mirrors.forget(1))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        assert not (tmp_path / "mirrors" / "1.git").exists()
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
    mirror = await waiting
    assert await mirror.resolve("main") == origin.tip()


async def test_a_half_made_mirror_is_begun_anew(
    origin: BareRepo, remote: Remote, mirrors: Mirrors, tmp_path: Path
) -> None:
    """A process that died while it made a mirror leaves nothing that others trust."""
    tip = origin.commit({"a": b"1"})
    half = tmp_path / "mirrors" / "1.git"
    half.mkdir(parents=True)
    (half / "HEAD").write_text("ref: refs/heads/evil")
    (half / "config").write_text("[core]\n\thooksPath = /tmp/evil\n")
    mirror = await mirrors.ready(1, remote, branches=["main"])
    assert await mirror.resolve("main") == tip
    assert "evil" not in (half / "config").read_text()


async def test_what_a_killed_process_locked_is_cleared(
    origin: BareRepo, remote: Remote, mirrors: Mirrors
) -> None:
    """Git's own lock files outlive a killed git; while we are alone they are nobody's."""
    first, second = origin.commits([{"a": b"1"}, {"a": b"2"}])
    git("update-ref", "refs/heads/main", first, cwd=origin.path)
    mirror = await mirrors.ready(1, remote, branches=["main"])
    git("update-ref", "refs/heads/main", second, cwd=origin.path)
    for name in ("config.lock", "packed-refs.lock", "refs/heads/main.lock"):
        (mirror.git_dir / name).touch()
    await mirrors.ready(1, remote, branches=["main"])
    assert await mirror.resolve("main") == second


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("fix", "fix/one", id="name-becomes-folder"),
        pytest.param("fix/one", "fix", id="folder-becomes-name"),
    ],
)
async def test_a_branch_takes_the_place_of_a_folder(
    origin: BareRepo, remote: Remote, mirrors: Mirrors, before: str, after: str
) -> None:
    """A branch that is gone does not stand in the way of one whose name collides with it."""
    tip = origin.commit({"a": b"1"})
    git("update-ref", f"refs/heads/{before}", tip, cwd=origin.path)
    mirror = await mirrors.ready(1, remote, branches=["main", before])
    git("update-ref", "-d", f"refs/heads/{before}", cwd=origin.path)
    git("update-ref", f"refs/heads/{after}", tip, cwd=origin.path)
    await mirrors.ready(1, remote, branches=[after])
    assert await mirror.resolve(mirrors.branch_ref(after)) == tip
    assert await mirror.resolve("main") == tip


@pytest.mark.parametrize(
    "name",
    ["-f", "--upload-pack=touch pwned", "a:b", "*", "a..b", "a.lock/b", "a b", "a\nb", ""],
)
async def test_a_hostile_branch_name_reaches_no_command(
    origin: BareRepo, remote: Remote, mirrors: Mirrors, tmp_path: Path, name: str
) -> None:
    """Refused before git is started; nothing is made anywhere."""
    origin.commit({"a": b"1"})
    with pytest.raises(GitError, match="not a branch name"):
        await mirrors.ready(1, remote, branches=[name])
    assert not list(tmp_path.rglob("pwned*"))


async def test_a_failed_fetch_says_so_and_spoils_nothing(
    origin: BareRepo, remote: Remote, mirrors: Mirrors
) -> None:
    """What is not there is an error; the mirror stays good."""
    tip = origin.commit({"a": b"1"})
    with pytest.raises(GitError, match="fetch failed"):
        await mirrors.ready(1, remote, branches=["nobody"])
    mirror = await mirrors.ready(1, remote, branches=["main"])
    assert await mirror.resolve("main") == tip


async def test_a_forgotten_mirror_is_gone(
    origin: BareRepo, remote: Remote, mirrors: Mirrors
) -> None:
    """An installation that leaves takes its data with it."""
    origin.commit({"a": b"1"})
    mirror = await mirrors.ready(1, remote, branches=["main"])
    await mirrors.forget(1)
    assert not mirror.git_dir.exists()


async def test_history_is_read_as_facts(origin: BareRepo) -> None:
    """Merge base, changed names, patch id and co-authors of a change."""
    base, ours = origin.commits([{"a": b"1\n", "b": b"b\n"}, {"a": b"1\n", "b": b"c\n"}])
    theirs = origin.commit({"a": b"2\n", "b": b"b\n"}, parent=base, ref="refs/heads/topic")
    rebased = origin.commit({"a": b"2\n", "b": b"c\n"}, parent=ours, ref="refs/heads/rebased")
    repository = origin.repository
    assert await repository.merge_base(ours, theirs) == base
    assert await repository.changed_paths(base, theirs) == {"a"}
    assert await repository.patch_id(base, theirs) == await repository.patch_id(ours, rebased)
    assert await repository.patch_id(base, theirs) != await repository.patch_id(base, ours)
    assert await repository.patch_id(base, base) == ""
    assert await repository.co_authors(base, theirs) == ()


async def test_histories_that_share_nothing_are_an_error(origin: BareRepo) -> None:
    """There is no change to speak of, and the message says why."""
    one = origin.commit({"a": b"1"}, ref="refs/heads/one")
    two = origin.commit({"a": b"2"}, ref="refs/heads/two")
    with pytest.raises(GitError, match="no common history"):
        await origin.repository.merge_base(one, two)


@pytest.mark.parametrize("name", ["nobody", "-f", "--git-dir", "a\0b", "@{-1}", ""])
async def test_a_name_that_means_no_commit_is_an_error(origin: BareRepo, name: str) -> None:
    """What a person types is a name, whatever it looks like."""
    origin.commit({"a": b"1"})
    with pytest.raises(GitError):
        await origin.repository.resolve(name)


async def test_a_persons_own_repository_is_read_from_any_folder(tmp_path: Path) -> None:
    """Its attributes shape nothing, and nothing outside a repository is opened."""
    work = tmp_path / "work"
    (work / "deep").mkdir(parents=True)
    git("init", "--quiet", "--initial-branch=main", ".", cwd=work)
    (work / ".gitattributes").write_text("*.py -diff linguist-generated\n")
    for text in ("one\n", "two\n"):
        (work / "deep" / "a.py").write_text(text)
        git("add", "--all", cwd=work)
        git("commit", "--quiet", "--message=m", cwd=work)
    repository = await open_local(work / "deep")
    diff = await repository.diff(
        await repository.resolve("main~1"), await repository.resolve("main")
    )
    assert [(file.path, file.binary, file.additions) for file in diff.files] == [
        ("deep/a.py", False, 1)
    ]
    with pytest.raises(GitError, match="not inside a git repository"):
        await open_local(tmp_path)
    with pytest.raises(GitError, match="not a directory"):
        await open_local(tmp_path / "nowhere")
