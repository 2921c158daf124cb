"""`anchor`: findings on a diff: which stand inline and where, which in the body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.domain.diff import Diff
from app.domain.effects import PublishReview
from app.domain.findings import Finding, Location
from app.git.diff import parse_diff
from app.review.anchors import settle
from app.review.publish import effects_of
from app.review.render import review_body
from tests.adapters.case import Case, only_knows
from tests.review import factories


async def check(case: Case, _: Path) -> None:
    expect = case.expect
    only_knows(
        expect, "placements", "comments", "never_sent", "reviews_created", "summary_never_contains"
    )
    diff = parse_diff(case.input["diff"].encode("utf-8", "surrogateescape"))
    findings = tuple(
        _finding(number, given, diff, case.input.get("file_length"))
        for number, given in enumerate(case.input["findings"], start=1)
    )
    view = factories.view(fresh=findings)
    effects = effects_of(factories.publishing(view, diff=diff))
    reviews = [effect for effect in effects if isinstance(effect, PublishReview)]
    placed = {comment.marker.id: comment for comment in reviews[0].comments}
    inline = [f"finding-{finding.id}" in placed for finding in findings]
    assert ["inline" if here else "summary" for here in inline] == expect["placements"]
    sent = [_sent(comment) for comment in reviews[0].comments]
    for comment, wanted in zip(sent, expect.get("comments", sent), strict=True):
        assert {key: comment[key] for key in wanted} == wanted
        assert comment["start_line"] == wanted.get("start_line", comment["start_line"])
    if never := expect.get("never_sent"):
        assert not any(never.items() <= comment.items() for comment in sent)
    assert len(reviews) == expect.get("reviews_created", 1)
    text = review_body(replace(view, inline=frozenset()))
    assert not any(words in text for words in expect.get("summary_never_contains", ()))


def _finding(number: int, given: Mapping[str, Any], diff: Diff, length: int | None) -> Finding:
    quote = given.get("quote", "")
    first = given.get("start_line", given.get("line"))
    location = Location(given["path"], first, given.get("line"))
    settled = settle(location, diff, line_count=length, quote=quote)
    return factories.finding(number, location=settled, body=given.get("body", ""), evidence=quote)


def _sent(comment: Any) -> dict[str, Any]:
    names = ("path", "line", "start_line", "side")
    return {name: getattr(comment, name) for name in names}
