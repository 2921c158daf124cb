"""`tree`: files and links of a checkout that mean harm: to who writes, reads or checks out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.fixer.workspace import EditableTree, EditRefused
from app.git.measure import CheckoutLimits, CheckoutTooLarge
from app.git.worktrees import checkout
from tests.adapters.case import Case, only_knows
from tests.adapters.repository import filtered, rules
from tests.git.repos import LINK, BareRepo, Content
from tests.git.test_measure import exploding


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(
        case.expect, "refused", "written", "outside_untouched", "checked_out", "note",
        "disk_used_megabytes_at_most", "no_file_created", "still_reviewed", "rules_from",
    )  # fmt: skip
    outside = tmp_path / "work" / "outside"
    outside.mkdir(parents=True)
    (outside / "file").write_text("outside")
    repo = BareRepo.create(tmp_path / "tree.git")
    commit = _commit(repo, case.input)
    if "still_reviewed" in case.expect:
        result = await filtered(tmp_path, {}, case.input["changed_files"])
        assert {file.path for file in result.reviewed} >= set(case.expect["still_reviewed"])
    if "rules_from" in case.expect:
        assert await rules(tmp_path, case.input["changed_files"]) == (case.expect["rules_from"],)
    most = case.input.get("limits", {"files": 100_000, "megabytes": 1_000})
    limits = CheckoutLimits(most["files"], most["megabytes"])
    note, refused, written = "", [], []
    try:
        async with checkout(repo.repository, commit, tmp_path / "work", limits) as copy:
            tree = EditableTree(copy.path)
            for path in case.input.get("writes", ()):
                try:
                    await tree.write(path, "new\n")
                    written.append(path)
                except EditRefused:
                    refused.append(path)
    except CheckoutTooLarge as error:
        note = str(error)
    assert [str(p.relative_to(outside.parent)) for p in outside.rglob("*")] == ["outside/file"]
    assert (refused, written) == (case.expect.get("refused", []), case.expect.get("written", []))
    assert bool(note) is not case.expect.get("checked_out", True)
    assert case.expect.get("note", "") in note
    assert not list(tmp_path.rglob(case.expect.get("no_file_created", "pwned")))


def _commit(repo: BareRepo, given: Mapping[str, Any]) -> str:
    if total := given.get("files_when_checked_out"):
        return exploding(repo, 10, len(str(total)) - 1)
    tree: dict[str, Content] = {p: (LINK, to.encode()) for p, to in given.get("links", {}).items()}
    tree |= {path: text.encode() for path, text in given.get("files", {}).items()}
    return repo.commit(tree | {p: t.encode() for p, t in given.get("changed_files", {}).items()})
