"""`file-filter`: one changed file with its first lines on both sides: is it read?"""

from __future__ import annotations

from pathlib import Path

from app.domain.coverage import CoverageState
from app.review.render import figures
from tests.adapters.case import Case, only_knows
from tests.adapters.repository import filtered
from tests.review import factories

BODY = "".join(f"body line {number}\n" for number in range(40))


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(case.expect, "reviewed", "reason", "named_in_summary", "also_reviewed")
    given, path = case.input, case.input["path"]
    base_head = given["head"] if given.get("base_has_same_head") else given.get("base_head")
    before = None if base_head is None else f"{base_head}{BODY}"
    after = f"{given['head']}{BODY}changed\n"
    base = {path: before, ".gitattributes": given.get("base_gitattributes")}
    head_attributes = given.get("head_gitattributes", given.get("base_gitattributes"))
    result = await filtered(
        tmp_path, base, {path: after, ".gitattributes": head_attributes, "other": "x\n"}
    )
    reviewed = {file.path for file in result.reviewed}
    assert (path in reviewed) is case.expect["reviewed"]
    assert reviewed >= set(case.expect.get("also_reviewed", ()))
    skipped = {e.path: e.reason for e in result.coverage.of(CoverageState.SKIPPED)}
    if "reason" in case.expect:
        assert skipped.get(path) == case.expect["reason"]
    if "named_in_summary" in case.expect:
        text = figures(factories.view(coverage=result.coverage))
        assert (path in text and skipped[path] in text) is case.expect["named_in_summary"]
