"""Requests of the wrong shape are refused; they never crash the double."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.github.stage import PULL_PATH, REPO_PATH, SHARED, Stage

GOOD_COMMENT = {"path": "a.py", "line": 3, "side": "RIGHT", "body": "x"}
NOTE = {
    "path": "a.py",
    "start_line": 1,
    "end_line": 1,
    "annotation_level": "notice",
    "message": "m",
}
ACTION = {"label": "l", "description": "d", "identifier": "i"}
BODIES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", f"{PULL_PATH}/reviews", {"event": "COMMENT", "body": "b", "comments": [GOOD_COMMENT]}),
    ("POST", f"{PULL_PATH}/reviews", {"event": "COMMENT", "body": "b", "commit_id": "main"}),
    ("POST", f"{PULL_PATH}/comments", {**GOOD_COMMENT, "commit_id": "main", "start_line": 2}),
    ("POST", f"{PULL_PATH}/comments", {"in_reply_to": 5, "body": "b"}),
    ("POST", f"{PULL_PATH}/comments/1/replies", {"body": "b"}),
    ("POST", f"{REPO_PATH}/issues/1/comments", {"body": "b"}),
    ("POST", f"{REPO_PATH}/issues/1/labels", {"labels": ["x"]}),
    ("POST", f"{REPO_PATH}/pulls", {"title": "t", "head": "h", "base": "main", "body": "b"}),
    ("PATCH", PULL_PATH, {"title": "t", "body": "b", "base": "main", "state": "open"}),
    ("PUT", f"{PULL_PATH}/merge", {"merge_method": "rebase", "sha": "x", "commit_title": "t"}),
    (
        "POST",
        f"{REPO_PATH}/check-runs",
        {
            "name": "n",
            "head_sha": "HEAD",
            "status": "queued",
            "conclusion": "success",
            "started_at": "2026-01-01T00:00:00Z",
            "completed_at": "2026-01-01T00:00:00Z",
            "details_url": "http://x",
            "external_id": "e",
            "output": {"title": "t", "summary": "s", "text": "x", "annotations": [NOTE]},
            "actions": [ACTION],
        },
    ),
    (
        "POST",
        "/app/installations/{installation}/access_tokens",
        {"permissions": {"contents": "read"}, "repositories": ["shop"], "repository_ids": [1]},
    ),
    ("POST", "/graphql", {"query": "{", "variables": {"a": 1}, "operationName": "o"}),
]
WEIRD: list[Any] = [None, -1, 2**70, True, "x\0y", [None], {"a": 1}]


def _variants(body: dict[str, Any]) -> list[Any]:
    """Every member replaced by every odd value, in nested objects and lists too."""
    made: list[Any] = []
    for name, value in body.items():
        made += [{**body, name: odd} for odd in WEIRD]
        if isinstance(value, dict):
            made += [{**body, name: inner} for inner in _variants(value)]
        if isinstance(value, list) and value and isinstance(value[0], dict):
            made += [{**body, name: [inner]} for inner in _variants(value[0])]
    return made


@SHARED
@pytest.mark.parametrize(
    ("method", "path", "body"), BODIES, ids=[f"{b[0]} {b[1]} {n}" for n, b in enumerate(BODIES)]
)
async def test_odd_bodies(battered: Stage, method: str, path: str, body: dict[str, Any]) -> None:
    """Whatever a member holds, the answer is GitHub's JSON and no 500."""
    found = await battered.call("GET", f"{REPO_PATH}/installation", who="jwt:ward")
    who = "jwt:ward" if path.startswith("/app/") else "ward"
    where = path.format(installation=found.json()["id"])
    for variant in _variants(body):
        answer = await battered.call(method, where, variant, who=who)
        assert answer.status_code < 500, variant
        assert isinstance(answer.json(), dict | list)


@SHARED
@pytest.mark.parametrize(
    "query",
    ["per_page=x", "per_page=-1", "page=0", "page=99", "cursor=x", "per_page=" + "9" * 5000],
)
async def test_odd_pages(battered: Stage, query: str) -> None:
    """Odd page numbers fall back to what is possible."""
    for path, who in ((f"{REPO_PATH}/pulls", "ward"), ("/app/hook/deliveries", "jwt:ward")):
        answer = await battered.call("GET", f"{path}?{query}", who=who)
        assert answer.status_code == 200


@SHARED
@pytest.mark.parametrize(
    "path",
    [
        f"{REPO_PATH}/commits/--output=x",
        f"{REPO_PATH}/commits/..%2F..%2Fx",
        f"{REPO_PATH}/commits/%00",
        f"{REPO_PATH}/git/ref/heads/-x",
        f"{REPO_PATH}/git/ref/heads/..%2F..%2Fconfig",
        f"{REPO_PATH}/git/ref/%2e%2e/HEAD",
        f"{REPO_PATH}/commits/-x/check-runs",
        f"{REPO_PATH}/commits/@%7B-1%7D/pulls",
        "/repos/..%2Facme/shop",
    ],
)
async def test_odd_names(battered: Stage, path: str) -> None:
    """Names that look like options, paths or expressions are names nobody has."""
    answer = await battered.call("GET", path)
    assert answer.status_code in {404, 422}
