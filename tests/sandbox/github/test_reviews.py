"""GitHub's rules about reviews, inline comments and their threads."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox.github import ApiError
from tests.sandbox.github.stage import (
    BASE_FILE,
    HEAD_FILE,
    PULL_PATH,
    REPO,
    REPO_PATH,
    SHARED,
    Stage,
)

_BLANK = "Pull request review thread diff hunk can't be blank"


def comment(**changes: Any) -> dict[str, Any]:
    """A good inline comment with differences."""
    return {"path": "a.py", "line": 3, "side": "RIGHT", "body": "x"} | changes


REFUSED: list[tuple[str, str, dict[str, Any], object]] = [
    (
        "own approval",
        "alice",
        {"event": "APPROVE"},
        ["Can not approve your own pull request"],
    ),
    (
        "own changes requested",
        "alice",
        {"event": "REQUEST_CHANGES", "body": "x"},
        ["Can not request changes on your own pull request"],
    ),
    ("comment without body", "ward", {"event": "COMMENT"}, ["Body can't be blank"]),
    ("changes without body", "ward", {"event": "REQUEST_CHANGES"}, ["Body can't be blank"]),
    (
        "one bad anchor among good ones",
        "ward",
        {"event": "COMMENT", "body": "b", "comments": [comment(), comment(line=10)]},
        [f"Pull request review thread line must be part of the diff and {_BLANK}"],
    ),
    (
        "file not in the pull request",
        "ward",
        {"event": "COMMENT", "body": "b", "comments": [comment(path="docs/c.md")]},
        [f"Pull request review thread path is invalid and {_BLANK}"],
    ),
    (
        "start after end",
        "ward",
        {"event": "COMMENT", "body": "b", "comments": [comment(start_line=4)]},
        ["Pull request review thread start line must precede the end line."],
    ),
    (
        "start in another hunk",
        "ward",
        {"event": "COMMENT", "body": "b", "comments": [comment(line=15, start_line=3)]},
        ["Pull request review thread start line must be part of the same hunk as the line."],
    ),
    (
        "left side of an added line",
        "ward",
        {"event": "COMMENT", "body": "b", "comments": [comment(path="b.py", line=1, side="LEFT")]},
        [f"Pull request review thread line must be part of the diff and {_BLANK}"],
    ),
    (
        "body too long",
        "ward",
        {"event": "COMMENT", "body": "x" * 65_537},
        [
            {
                "resource": "PullRequestReview",
                "code": "unprocessable",
                "field": "data",
                "message": "Body is too long (maximum is 65536 characters)",
            }
        ],
    ),
    (
        "unknown commit",
        "ward",
        {"event": "COMMENT", "body": "b", "commit_id": "f" * 40},
        ["Variable $commitOID of type GitObjectID was provided invalid value"],
    ),
]


@SHARED
@pytest.mark.parametrize(
    ("who", "body", "errors"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
async def test_review_refused(
    shared: Stage, who: str, body: dict[str, Any], errors: object
) -> None:
    """422 in GitHub's words, and nothing of the review remains."""
    answer = await shared.review(who, **body)
    assert answer.status_code == 422
    assert answer.json()["errors"] == errors
    assert shared.gh.pull(REPO, 1).reviews == ()
    assert shared.gh.pull(REPO, 1).threads == ()


@SHARED
@pytest.mark.parametrize(
    "body",
    [{"event": "MAYBE"}, {"comments": "x"}, {"comments": [{"path": "a.py"}]}, {"body": 1}],
    ids=["event", "comments", "comment", "body"],
)
async def test_review_of_the_wrong_shape(shared: Stage, body: dict[str, Any]) -> None:
    """Bodies outside the schema are 422 `Invalid request.`"""
    answer = await shared.review(**body)
    assert answer.status_code == 422
    assert answer.json()["message"].startswith("Invalid request.")


ALLOWED: list[tuple[str, str, dict[str, Any], str]] = [
    ("own comment", "alice", {"event": "COMMENT", "body": "x"}, "COMMENTED"),
    ("approval without body", "ward", {"event": "APPROVE"}, "APPROVED"),
    ("changes", "bob", {"event": "REQUEST_CHANGES", "body": "x"}, "CHANGES_REQUESTED"),
    ("longest body", "ward", {"event": "COMMENT", "body": "x" * 65_536}, "COMMENTED"),
    (
        "deleted line",
        "ward",
        {"event": "COMMENT", "body": "b", "comments": [comment(line=16, side="LEFT")]},
        "COMMENTED",
    ),
    (
        "range",
        "ward",
        {"event": "COMMENT", "body": "b", "comments": [comment(line=5, start_line=2)]},
        "COMMENTED",
    ),
    ("pending", "ward", {"body": "x", "comments": [comment()]}, "PENDING"),
]


@pytest.mark.parametrize(
    ("who", "body", "state"), [a[1:] for a in ALLOWED], ids=[a[0] for a in ALLOWED]
)
async def test_review_accepted(stage: Stage, who: str, body: dict[str, Any], state: str) -> None:
    """200 (not 201); a pending review has no submitted_at."""
    answer = await stage.review(who, **body)
    assert answer.status_code == 200
    assert answer.json()["state"] == state
    assert ("submitted_at" in answer.json()) is (state != "PENDING")
    assert answer.json()["commit_id"] == stage.head


async def test_pending_review(stage: Stage) -> None:
    """One per user, unseen by others, blocking submits and replies until submitted or deleted."""
    await stage.review("bob", event="COMMENT", body="b", comments=[comment()])
    first = (await stage.call("GET", f"{PULL_PATH}/comments")).json()[0]["id"]
    pending = (await stage.review(body="draft", comments=[comment()])).json()["id"]
    again = await stage.review(event="APPROVE")
    assert again.json()["errors"] == ["User can only have one pending review per pull request"]
    path = f"{PULL_PATH}/comments/{first}/replies"
    reply = await stage.call("POST", path, {"body": "x"})
    assert "user_id can only have one pending review per pull request" in reply.text
    seen = (await stage.call("GET", f"{PULL_PATH}/reviews", who="bob")).json()
    own = (await stage.call("GET", f"{PULL_PATH}/reviews")).json()
    assert (len(seen), len(own)) == (1, 2)
    assert len((await stage.call("GET", f"{PULL_PATH}/comments")).json()) == 1
    hidden = await stage.call("GET", f"{PULL_PATH}/reviews/{pending}", who="bob")
    assert hidden.status_code == 404
    submitted = await stage.call(
        "POST", f"{PULL_PATH}/reviews/{pending}/events", {"event": "COMMENT"}
    )
    assert submitted.json()["state"] == "COMMENTED"
    assert len((await stage.call("GET", f"{PULL_PATH}/comments")).json()) == 2


async def test_delete_pending_review(stage: Stage) -> None:
    """Deleting takes the comments along; a submitted review stays."""
    pending = (await stage.review(body="draft", comments=[comment()])).json()["id"]
    gone = await stage.call("DELETE", f"{PULL_PATH}/reviews/{pending}")
    assert (gone.status_code, stage.gh.pull(REPO, 1).threads) == (200, ())
    kept = (await stage.review(event="APPROVE")).json()["id"]
    refused = await stage.call("DELETE", f"{PULL_PATH}/reviews/{kept}")
    assert refused.status_code == 422


DISMISSALS = [
    ("approval", {"event": "APPROVE"}, 200, ""),
    ("changes requested", {"event": "REQUEST_CHANGES", "body": "b"}, 200, ""),
    (
        "comment",
        {"event": "COMMENT", "body": "b"},
        422,
        "Can not dismiss a commented pull request review",
    ),
]


@pytest.mark.parametrize(
    ("body", "status", "error"), [d[1:] for d in DISMISSALS], ids=[d[0] for d in DISMISSALS]
)
async def test_dismissal(stage: Stage, body: dict[str, Any], status: int, error: str) -> None:
    """Verdicts can be dismissed once, comments never; the body stays."""
    review = (await stage.review(**body)).json()
    path = f"{PULL_PATH}/reviews/{review['id']}/dismissals"
    answer = await stage.call("PUT", path, {"message": "stale"})
    assert answer.status_code == status
    if status != 200:
        assert answer.json()["errors"] == [error]
        return
    assert (answer.json()["state"], answer.json()["body"]) == ("DISMISSED", review["body"])
    again = await stage.call("PUT", path, {"message": "stale"})
    assert again.json()["errors"] == ["Can not dismiss a dismissed pull request review"]


async def test_single_comment_and_replies(stage: Stage) -> None:
    """A single comment is 201 with its own form of error; only first comments take replies."""
    body = comment(commit_id=stage.head)
    made = await stage.call("POST", f"{PULL_PATH}/comments", body)
    assert (made.status_code, made.json()["line"], made.json()["position"]) == (201, 3, 4)
    outside = await stage.call("POST", f"{PULL_PATH}/comments", {**body, "line": 10})
    assert outside.json()["message"] == "Validation Failed"
    assert outside.json()["errors"] == [
        {
            "resource": "PullRequestReviewComment",
            "code": "custom",
            "field": "pull_request_review_thread.line",
            "message": "pull_request_review_thread.line must be part of the diff",
        }
    ]
    path = f"{PULL_PATH}/comments/{made.json()['id']}/replies"
    reply = await stage.call("POST", path, {"body": "why?"}, who="bob")
    assert (reply.status_code, reply.json()["in_reply_to_id"]) == (201, made.json()["id"])
    nested = f"{PULL_PATH}/comments/{reply.json()['id']}/replies"
    assert (await stage.call("POST", nested, {"body": "x"})).status_code == 404
    file = await stage.call(
        "POST",
        f"{PULL_PATH}/comments",
        {"path": "b.py", "subject_type": "file", "body": "whole", "commit_id": stage.head},
    )
    assert (file.json()["subject_type"], file.json()["line"]) == ("file", None)


async def _lines(stage: Stage) -> list[tuple[object, object, object]]:
    shown = (await stage.call("GET", f"{PULL_PATH}/comments")).json()
    return [(c["line"], c["original_line"], c["position"] is None) for c in shown]


PUSHES = [
    ("elsewhere", HEAD_FILE.replace("line 20\n", ""), (3, 3, False)),
    ("lines above", "top\n" + HEAD_FILE, (4, 3, False)),
    ("the line itself", HEAD_FILE.replace("line three", "line drei"), (None, 3, True)),
    ("back to the base", BASE_FILE, (None, 3, True)),
]


@pytest.mark.parametrize(("text", "shown"), [p[1:] for p in PUSHES], ids=[p[0] for p in PUSHES])
async def test_push_moves_or_outdates_comments(
    stage: Stage, text: str, shown: tuple[object, object, object]
) -> None:
    """Comments follow their line; when it changes, `line` and `position` become null."""
    await stage.review(event="COMMENT", body="b", comments=[comment()])
    sha = await stage.gh.push(REPO, "feature", {"a.py": text}, author="alice")
    assert await _lines(stage) == [shown]
    first = (await stage.call("GET", f"{PULL_PATH}/comments")).json()[0]
    assert first["original_commit_id"] == stage.head
    assert first["commit_id"] == (stage.head if shown[2] else sha)
    assert stage.gh.pull(REPO, 1).threads[0].outdated is shown[2]


async def test_review_of_an_older_commit(stage: Stage) -> None:
    """Anchors are checked in the diff of the given commit, not of the head."""
    await stage.gh.push(REPO, "feature", {"a.py": BASE_FILE}, author="alice")
    old = await stage.review(event="COMMENT", body="b", commit_id=stage.head, comments=[comment()])
    new = await stage.review(event="COMMENT", body="b", comments=[comment()])
    assert (old.status_code, new.status_code) == (200, 422)


async def test_people_review_too(stage: Stage) -> None:
    """The acts of people keep GitHub's rules."""
    await stage.gh.review(REPO, 1, "APPROVE", actor="bob")
    with pytest.raises(ApiError):
        await stage.gh.review(REPO, 1, "APPROVE", actor="alice")
    assert [(r.author, r.state) for r in stage.gh.pull(REPO, 1).reviews] == [("bob", "APPROVED")]


async def test_edit_and_delete_inline_comment(stage: Stage) -> None:
    """Inline comments can be edited and deleted; the thread goes with its last comment."""
    await stage.review(event="COMMENT", body="b", comments=[comment()])
    found = (await stage.call("GET", f"{PULL_PATH}/comments")).json()[0]["id"]
    path = f"{REPO_PATH}/pulls/comments/{found}"
    assert (await stage.call("PATCH", path, {"body": "y"})).json()["body"] == "y"
    assert (await stage.call("DELETE", path)).status_code == 204
    assert stage.gh.pull(REPO, 1).threads == ()
