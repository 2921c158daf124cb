"""`workspaces`: jobs on repositories of the same name, at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from app.git.mirror import Mirrors
from app.git.process import Remote
from app.git.worktrees import checkout
from tests.adapters.case import Case, only_knows
from tests.git.repos import BareRepo


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(case.expect, "folders_distinct", "nothing_left_after_job")
    names = sorted({job["repository"] for job in case.input["jobs"]})
    mirrors, work = Mirrors(tmp_path / "mirrors"), tmp_path / "work"
    together = asyncio.Barrier(len(case.input["jobs"]))

    async def run(name: str) -> tuple[Path, bytes]:
        number = names.index(name) + 1
        origin = BareRepo(tmp_path / name)
        mirror = await mirrors.ready(number, Remote(origin.url), branches=["main"])
        async with checkout(mirror, origin.tip(), work) as copy:
            own = (copy.path / "own.txt").read_bytes()
            (copy.path / "left-over").touch()
            await together.wait()
            assert sorted(path.name for path in copy.path.iterdir()) == [
                ".git", "left-over", "own.txt",
            ]  # fmt: skip
            return copy.path, own

    for name in names:
        BareRepo.create(tmp_path / name).commit({"own.txt": name.encode()})
    found = await asyncio.gather(*(run(job["repository"]) for job in case.input["jobs"]))
    distinct = len({folder for folder, _ in found}) == len(found)
    assert distinct is case.expect.get("folders_distinct", distinct)
    assert [own.decode() for _, own in found] == [job["repository"] for job in case.input["jobs"]]
    if case.expect.get("nothing_left_after_job"):
        assert list(work.iterdir()) == []
