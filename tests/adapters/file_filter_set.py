"""`file-filter-set`: the files of a pull request as the API lists them; we read the repository."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.domain.coverage import CoverageState
from tests.adapters.case import Case, only_knows
from tests.adapters.repository import filtered


async def check(case: Case, tmp_path: Path) -> None:
    expect = case.expect
    only_knows(
        expect, "reviewed", "skipped", "reviewed_or_reported_as_not_reviewed",
        "may_approve_without_big_file",
    )  # fmt: skip
    entries = case.input["list_files_entries"]
    base = {
        e.get("previous_filename", e["filename"]): _lines("old", e, "deletions") for e in entries
    }
    head = {e["filename"]: _lines("new", e, "additions") for e in entries}
    result = await filtered(tmp_path, base, {**head, "other": "x\n"})
    states = {entry.path: entry.state for entry in result.coverage.entries}
    reviewed = {path for path, state in states.items() if state is CoverageState.REVIEWED}
    assert reviewed >= set(expect.get("reviewed", ()))
    assert not reviewed & set(expect.get("skipped", ()))
    named = expect.get("reviewed_or_reported_as_not_reviewed", ())
    assert set(states) >= set(named)
    if expect.get("may_approve_without_big_file") is False:
        assert reviewed >= set(named) or not result.coverage.is_full


def _lines(word: str, entry: Mapping[str, Any], key: str) -> str | None:
    absent = {"additions": "removed", "deletions": "added"}[key]
    if entry.get("status") == absent:
        return None
    return "".join(f"{word} {number}\n" for number in range(entry[key])) + "same\n"
