"""`threads`: a page that has threads is reviewed again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.forges.recording.world import ThreadRecord
from tests.adapters.case import Case, only_knows
from tests.adapters.page import OURS, Page, open_page
from tests.review.story import REVIEWER


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(
        case.expect,
        *("new_comments", "new_comment_mentions", "resolved", "still_open", "blocking"),
    )
    new, now = case.input["new_findings"], case.input.get("code_now")
    async with open_page(tmp_path) as page:
        threads = await _first_review(page, case.input["threads"])
        places = new or case.input["threads"]
        page.has({item["path"]: _file(item["line"], now or item["code"]) for item in places})
        found = [{key: item[key] for key in ("path", "line", "title")} for item in new]
        began = await page.review(*found, earlier="open" if now is None else "fixed")
        run = await page.story.last_run()
    bodies = " ".join(thread.comments[0][1].body for thread in began)
    by_us = {name for name, one in threads.items() if one.resolved_by == REVIEWER.login}
    expect = case.expect
    assert len(began) == expect.get("new_comments", len(began))
    assert all(words in bodies for words in expect.get("new_comment_mentions", ()))
    assert by_us == set(expect.get("resolved", by_us))
    assert all(threads[name].resolved_by is None for name in expect.get("still_open", ()))
    assert len(run.blocking) == expect.get("blocking", len(run.blocking))


async def _first_review(page: Page, threads: list[dict[str, Any]]) -> dict[str, ThreadRecord]:
    """The page as the case finds it, by the names of its threads."""
    page.has({item["path"]: _file(item["line"], item["code"]) for item in threads})
    own = [item for item in threads if item["author"] == OURS]
    began = await page.review(
        *({"path": t["path"], "line": t["line"], "title": t["finding"]} for t in own)
    )
    found = dict(zip((item["id"] for item in own), began, strict=True))
    for item in threads:
        if item["id"] not in found:
            place = item["path"], item["line"], item["finding"]
            found[item["id"]] = page.begin(item["author"], *place)
        last = item.get("last_reply")
        filler = item.get("replies_count", 0) - (last is not None)
        replies = [{"author": "outsider-1", "body": "I see it too."}] * filler
        for reply in (*item["replies"], *replies, *([last] if last else [])):
            page.answer(found[item["id"]], **reply)
        if item["resolved"]:
            found[item["id"]].resolved_by = (last or {}).get("author", "maintainer-1")
    return found


def _file(line: int, code: str) -> bytes:
    return b"x = 1\n" * (line - 1) + code.encode() + b"\n"
