"""The double's answers against GitHub's published description of its API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.github.spec import document, violations
from tests.sandbox.github.stage import PULL_PATH, REPO, REPO_PATH, Stage

_REPO = "/repos/{owner}/{repo}"
_PULL = f"{_REPO}/pulls/{{pull_number}}"
_ISSUE = f"{_REPO}/issues/{{issue_number}}"
_CHECK = {
    "title": "t",
    "summary": "s",
    "annotations": [
        {
            "path": "a.py",
            "start_line": 1,
            "end_line": 1,
            "annotation_level": "notice",
            "message": "m",
        }
    ],
}


async def _furnished(stage: Stage) -> dict[str, Any]:
    """Give the pull request one of everything; returns ids for the paths."""
    comments = [
        {"path": "a.py", "line": 3, "body": "one"},
        {"path": "a.py", "line": 4, "start_line": 2, "body": "many"},
        {"path": "a.py", "line": 16, "side": "LEFT", "body": "old"},
    ]
    review = (await stage.review(event="REQUEST_CHANGES", body="no", comments=comments)).json()
    inline = (await stage.call("GET", f"{PULL_PATH}/comments")).json()[0]
    run = {"name": "ward", "head_sha": stage.head, "status": "in_progress", "output": _CHECK}
    check = (await stage.call("POST", f"{REPO_PATH}/check-runs", run)).json()
    talk = await stage.call("POST", f"{REPO_PATH}/issues/1/comments", {"body": "hello"})
    await stage.gh.label(REPO, 1, "bug", actor="alice")
    installation = await stage.call("GET", f"{REPO_PATH}/installation", who="jwt:ward")
    ids = {"review": review, "inline": inline, "check": check, "talk": talk.json()}
    found = {name: item["id"] for name, item in ids.items()}
    return {**found, "installation": installation.json()["id"], "sha": stage.head}


READS = [
    ("GET", "/app", "/app", "jwt:ward"),
    ("GET", "/app/installations", "/app/installations", "jwt:ward"),
    (
        "GET",
        "/app/installations/{installation}",
        "/app/installations/{installation_id}",
        "jwt:ward",
    ),
    ("GET", "/installation/repositories", "/installation/repositories", "ward"),
    ("GET", "/rate_limit", "/rate_limit", "ward"),
    ("GET", "/users/ward[bot]", "/users/{username}", "ward"),
    ("GET", f"{REPO_PATH}/installation", f"{_REPO}/installation", "jwt:ward"),
    ("GET", REPO_PATH, _REPO, "ward"),
    (
        "GET",
        f"{REPO_PATH}/collaborators/alice/permission",
        f"{_REPO}/collaborators/{{username}}/permission",
        "ward",
    ),
    ("GET", f"{REPO_PATH}/commits/feature", f"{_REPO}/commits/{{ref}}", "ward"),
    (
        "GET",
        f"{REPO_PATH}/commits/{{sha}}/check-runs",
        f"{_REPO}/commits/{{ref}}/check-runs",
        "ward",
    ),
    (
        "GET",
        f"{REPO_PATH}/commits/{{sha}}/pulls",
        f"{_REPO}/commits/{{commit_sha}}/pulls",
        "ward",
    ),
    ("GET", f"{REPO_PATH}/git/ref/heads/feature", f"{_REPO}/git/ref/{{ref}}", "ward"),
    ("GET", f"{REPO_PATH}/pulls", f"{_REPO}/pulls", "ward"),
    ("GET", PULL_PATH, _PULL, "ward"),
    ("GET", f"{PULL_PATH}/files", f"{_PULL}/files", "ward"),
    ("GET", f"{PULL_PATH}/commits", f"{_PULL}/commits", "ward"),
    ("GET", f"{PULL_PATH}/reviews", f"{_PULL}/reviews", "ward"),
    ("GET", f"{PULL_PATH}/reviews/{{review}}", f"{_PULL}/reviews/{{review_id}}", "ward"),
    (
        "GET",
        f"{PULL_PATH}/reviews/{{review}}/comments",
        f"{_PULL}/reviews/{{review_id}}/comments",
        "ward",
    ),
    ("GET", f"{PULL_PATH}/comments", f"{_PULL}/comments", "ward"),
    (
        "GET",
        f"{REPO_PATH}/pulls/comments/{{inline}}",
        f"{_REPO}/pulls/comments/{{comment_id}}",
        "ward",
    ),
    ("GET", f"{REPO_PATH}/issues/1/comments", f"{_ISSUE}/comments", "ward"),
    (
        "GET",
        f"{REPO_PATH}/issues/comments/{{talk}}",
        f"{_REPO}/issues/comments/{{comment_id}}",
        "ward",
    ),
    ("GET", f"{REPO_PATH}/issues/1/labels", f"{_ISSUE}/labels", "ward"),
    ("GET", f"{REPO_PATH}/check-runs/{{check}}", f"{_REPO}/check-runs/{{check_run_id}}", "ward"),
    (
        "GET",
        f"{REPO_PATH}/check-runs/{{check}}/annotations",
        f"{_REPO}/check-runs/{{check_run_id}}/annotations",
        "ward",
    ),
]


# Where the description contradicts GitHub itself: an account is a user *or* an enterprise, not
# both, and labels without description have null in lists as everywhere else.
DEFECTS = ("$[0].account:", "$[0].labels[0].description: None")


def _real(violations_found: list[str]) -> list[str]:
    return [text for text in violations_found if not text.startswith(DEFECTS)]


async def test_reads_fit_the_description(stage: Stage) -> None:
    """Every read answers in the shape that GitHub publishes."""
    ids = await _furnished(stage)
    wrong: dict[str, list[str]] = {}
    for method, path, described, who in READS:
        answer = await stage.call(method, path.format_map(ids), who=who)
        assert answer.status_code == 200, (path, answer.text)
        bad = _real(violations(method, described, 200, answer.json()))
        if bad:
            wrong[described] = bad
    assert wrong == {}


WRITES: list[tuple[str, str, str, object, str, int]] = [
    (
        "POST",
        "/app/installations/{installation}/access_tokens",
        "/app/installations/{installation_id}/access_tokens",
        {"repositories": ["shop"], "permissions": {"contents": "read"}},
        "jwt:ward",
        201,
    ),
    (
        "POST",
        f"{PULL_PATH}/reviews",
        f"{_PULL}/reviews",
        {"event": "COMMENT", "body": "hm"},
        "ward",
        200,
    ),
    ("POST", f"{PULL_PATH}/reviews", f"{_PULL}/reviews", {"body": "draft"}, "bob", 200),
    (
        "PUT",
        f"{PULL_PATH}/reviews/{{review}}/dismissals",
        f"{_PULL}/reviews/{{review_id}}/dismissals",
        {"message": "m"},
        "ward",
        200,
    ),
    (
        "POST",
        f"{PULL_PATH}/comments",
        f"{_PULL}/comments",
        {"path": "b.py", "line": 1, "body": "b", "commit_id": "{sha}"},
        "ward",
        201,
    ),
    (
        "POST",
        f"{PULL_PATH}/comments/{{inline}}/replies",
        f"{_PULL}/comments/{{comment_id}}/replies",
        {"body": "answer"},
        "ward",
        201,
    ),
    (
        "POST",
        f"{REPO_PATH}/pulls/comments/{{inline}}/reactions",
        f"{_REPO}/pulls/comments/{{comment_id}}/reactions",
        {"content": "eyes"},
        "ward",
        201,
    ),
    ("POST", f"{REPO_PATH}/issues/1/comments", f"{_ISSUE}/comments", {"body": "x"}, "ward", 201),
    (
        "PATCH",
        f"{REPO_PATH}/issues/comments/{{talk}}",
        f"{_REPO}/issues/comments/{{comment_id}}",
        {"body": "y"},
        "ward",
        200,
    ),
    (
        "POST",
        f"{REPO_PATH}/issues/comments/{{talk}}/reactions",
        f"{_REPO}/issues/comments/{{comment_id}}/reactions",
        {"content": "rocket"},
        "ward",
        201,
    ),
    ("POST", f"{REPO_PATH}/issues/1/labels", f"{_ISSUE}/labels", {"labels": ["x"]}, "ward", 200),
    ("DELETE", f"{REPO_PATH}/issues/1/labels/bug", f"{_ISSUE}/labels/{{name}}", None, "ward", 200),
    (
        "POST",
        f"{REPO_PATH}/check-runs",
        f"{_REPO}/check-runs",
        {"name": "n", "head_sha": "{sha}", "conclusion": "success", "output": _CHECK},
        "ward",
        201,
    ),
    (
        "PATCH",
        f"{REPO_PATH}/check-runs/{{check}}",
        f"{_REPO}/check-runs/{{check_run_id}}",
        {"conclusion": "failure"},
        "ward",
        200,
    ),
    ("PATCH", PULL_PATH, _PULL, {"title": "Other"}, "ward", 200),
    ("PUT", f"{PULL_PATH}/merge", f"{_PULL}/merge", {}, "ward", 200),
    ("GET", PULL_PATH, _PULL, None, "ward", 200),
    (
        "DELETE",
        f"{REPO_PATH}/git/refs/heads/feature",
        f"{_REPO}/git/refs/{{ref}}",
        None,
        "ward",
        204,
    ),
]


async def test_writes_fit_the_description(stage: Stage) -> None:
    """Every write answers with the documented status and shape, merging included."""
    ids = await _furnished(stage)
    wrong: dict[str, list[str]] = {}
    for method, path, described, body, who, status in WRITES:
        sent = body
        if isinstance(body, dict):
            sent = {k: v.format_map(ids) if v == "{sha}" else v for k, v in body.items()}
        answer = await stage.call(method, path.format_map(ids), sent, who=who)
        assert answer.status_code == status, (path, answer.text)
        bad = violations(method, described, status, answer.json() if answer.content else None)
        if bad:
            wrong[f"{method} {described}"] = bad
    assert wrong == {}


async def test_created_pull_request_fits_the_description(stage: Stage) -> None:
    """A pull request opened by an App answers 201 with the full pull request."""
    await stage.gh.push(REPO, "other", {"z.py": "z\n"}, author="fix[bot]")
    body = {"title": "t", "head": "other", "base": "main", "draft": True}
    answer = await stage.call("POST", f"{REPO_PATH}/pulls", body, who="fix")
    assert violations("POST", f"{_REPO}/pulls", answer.status_code, answer.json()) == []


REFUSALS: list[tuple[str, str, str, object, int]] = [
    ("unknown pull request", f"{REPO_PATH}/pulls/99", _PULL, None, 404),
    ("own approval", f"{PULL_PATH}/reviews", f"{_PULL}/reviews", {"event": "APPROVE"}, 422),
    ("merged twice", f"{PULL_PATH}/merge", f"{_PULL}/merge", {"sha": "0" * 40}, 409),
]


@pytest.mark.parametrize(
    ("path", "described", "body", "status"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS]
)
async def test_refusals_fit_the_description(
    stage: Stage, path: str, described: str, body: object, status: int
) -> None:
    """Errors have GitHub's shape and are among the documented statuses."""
    method = "GET" if body is None else "PUT" if path.endswith("merge") else "POST"
    answer = await stage.call(method, path, body, who="alice")
    assert answer.status_code == status
    assert violations(method, described, status, answer.json()) == []
    assert answer.json()["status"] == str(status)


def test_the_judge_can_condemn() -> None:
    """A wrong shape, a wrong null and an undocumented status are all violations."""
    assert violations("POST", f"{_ISSUE}/comments", 201, {"id": "text"})
    assert violations("PUT", f"{_PULL}/merge", 200, {"sha": None, "merged": True, "message": ""})
    assert violations("PUT", f"{_PULL}/merge", 299, {})
    assert len(document()["paths"]) > 30
