"""`git-settings`: what is set in a repository does not shape our own diff of two trees."""

from __future__ import annotations

from pathlib import Path

from tests.adapters.case import Case, only_knows
from tests.git.repos import BareRepo, git


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(case.expect, "same_result_as_without_settings", "paths")
    repo = BareRepo.create(tmp_path / "repo.git")
    old, new = repo.commits(
        [
            {path: text.encode() for path, text in case.input[side].items()}
            for side in ("old_tree", "new_tree")
        ]
    )
    before = await repo.repository.diff(old, new)
    for key, value in case.input["settings"].items():
        git("config", key, str(value), cwd=repo.path)
    after = await repo.repository.diff(old, new)
    if "same_result_as_without_settings" in case.expect:
        assert (after == before) is case.expect["same_result_as_without_settings"]
    if "paths" in case.expect:
        assert [file.path for file in after.files] == case.expect["paths"]
