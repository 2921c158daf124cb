"""`git-ref`: names of branches from outside, on their way to a fetch and to a push."""

from __future__ import annotations

from pathlib import Path

from app.errors import GitError
from app.git.mirror import Mirrors, Repository
from app.git.process import Remote
from app.git.worktrees import push
from tests.adapters.case import Case, only_knows
from tests.git.repos import BareRepo, git


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(case.expect, "no_file_created", "error", "all_refused", "main_unchanged")
    origin = BareRepo.create(tmp_path / "origin.git")
    tip = origin.commit({"a.py": b"x = 1\n"})
    mirrors, remote = Mirrors(tmp_path / "mirrors"), Remote(origin.url)
    mirror = await mirrors.ready(1, remote, branches=["main"])
    for name in case.input.get("upstreams", ()):
        await _read(mirrors, remote, name)
    refused = [await _is_refused(mirror, remote, tip, n) for n in case.input.get("push_names", ())]
    if "all_refused" in case.expect:
        assert all(refused) is case.expect["all_refused"], refused
    if "main_unchanged" in case.expect:
        assert (origin.tip() == tip) is case.expect["main_unchanged"]
        assert git("for-each-ref", cwd=origin.path).count(b"\n") == 1
    if "no_file_created" in case.expect:
        assert not list(tmp_path.rglob(f"*{case.expect['no_file_created']}*"))


async def _read(mirrors: Mirrors, remote: Remote, upstream: str) -> None:
    """Whole, and without the prefix that an app would cut off; a refusal is an answer."""
    bare = upstream.removeprefix("refs/heads/").removeprefix("origin/")
    for name in (upstream, bare):
        try:
            mirror = await mirrors.ready(1, remote, branches=[name])
            await mirror.resolve(name)
        except GitError:
            continue


async def _is_refused(mirror: Repository, remote: Remote, sha: str, name: str) -> bool:
    try:
        await push(mirror, remote, sha=sha, branch=name, expected=None)
    except GitError:
        return True
    return False
