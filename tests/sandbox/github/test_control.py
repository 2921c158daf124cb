"""The sandbox's own sides: `/_sandbox`, pages, the call log, limits and injected faults."""

from __future__ import annotations

import socket
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.sandbox.github import AppConfig, DoubleConfig, GitHubDouble
from app.sandbox.github.control import ACTS
from app.sandbox.github.server import _listening
from tests.sandbox.github.stage import PULL_PATH, REPO, REPO_PATH, SHARED, Stage, staged


async def _act(stage: Stage, act: str, **arguments: object) -> dict[str, object]:
    headers = {"X-Sandbox-Token": stage.gh.control_token}
    answer = await stage.http.post(f"/_sandbox/{act}", json=arguments, headers=headers)
    body = answer.json()
    assert isinstance(body, dict)
    return {**body, "status": answer.status_code}


async def test_a_story_over_http(stage: Stage) -> None:
    """What the methods can do, other processes can do over HTTP."""
    await _act(stage, "create_repository", owner="acme", name="web", files={"x": "1\n"})
    await _act(stage, "permit", repository="acme/web", login="dan", level="write")
    changes: dict[str, object] = {"x": None, "y": "2\n"}
    pushed = await _act(
        stage, "push", repository="acme/web", branch="b", files=changes, author="dan"
    )
    opened = await _act(
        stage, "open_pull_request", repository="acme/web", author="dan", head="b", title="T"
    )
    assert (opened["head_sha"], opened["author"]) == (pushed["result"], "dan")
    await _act(stage, "comment", repository="acme/web", number=1, body="hi", actor="bob")
    await _act(stage, "label", repository="acme/web", number=1, name="l", actor="bob")
    merged = await _act(stage, "merge", repository="acme/web", number=1, actor="bob")
    headers = {"X-Sandbox-Token": stage.gh.control_token}
    seen = (await stage.http.get("/_sandbox/pulls/acme/web/1", headers=headers)).json()
    assert (seen["state"], seen["merge_commit_sha"]) == ("merged", merged["result"])
    assert (seen["labels"], seen["comments"][0]["body"]) == (["l"], "hi")
    assert (await _act(stage, "drain"))["status"] == 200


async def test_bot_author(stage: Stage) -> None:
    """A pull request can be opened by any bot login, of type Bot."""
    await stage.gh.push(REPO, "deps", {"lock": "1\n"}, author="dependabot[bot]")
    await _act(
        stage,
        "open_pull_request",
        repository=REPO,
        author="dependabot[bot]",
        head="deps",
        title="Bump",
    )
    user = (await stage.call("GET", f"{REPO_PATH}/pulls/2")).json()["user"]
    assert (user["login"], user["type"]) == ("dependabot[bot]", "Bot")


WRONG: list[tuple[str, str, dict[str, object], int]] = [
    ("unknown act", "explode", {}, 404),
    ("unknown argument", "close", {"repository": REPO, "number": 1, "by": "bob"}, 400),
    ("unknown repository", "close", {"repository": "a/b", "number": 1, "actor": "bob"}, 404),
    ("unknown number", "close", {"repository": REPO, "number": 9, "actor": "bob"}, 404),
    (
        "existing repository",
        "create_repository",
        {"owner": "acme", "name": "shop", "files": {}},
        409,
    ),
    (
        "refused by GitHub's rules",
        "review",
        {"repository": REPO, "number": 1, "event": "APPROVE", "actor": "alice"},
        422,
    ),
]


@SHARED
@pytest.mark.parametrize(
    ("act", "arguments", "status"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
async def test_wrong_acts(
    shared: Stage, act: str, arguments: dict[str, object], status: int
) -> None:
    """Mistakes are answered with a reason."""
    answer = await _act(shared, act, **arguments)
    assert answer["status"] == status
    assert answer["message"]


async def test_control_is_guarded(stage: Stage) -> None:
    """Without the control token nothing acts and nothing is told."""
    before = stage.gh.pull(REPO, 1)
    paths = [("POST", f"/_sandbox/{act}") for act in (*ACTS, "drain")]
    paths += [("GET", "/_sandbox/calls"), ("GET", "/_sandbox/pulls/acme/shop/1")]
    for method, path in paths:
        for given in (b"", b"no", "ü".encode()):
            headers = {b"X-Sandbox-Token": given}
            answer = await stage.http.request(method, path, headers=headers)
            assert answer.status_code == 401, path
    assert stage.gh.pull(REPO, 1) == before


async def test_pages_escape_everything(stage: Stage) -> None:
    """Text of people and models can't become markup on the pages."""
    evil = "<script>alert(1)</script>"
    await stage.gh.edit(REPO, 1, actor="alice", title=evil, body=evil)
    await stage.gh.push(REPO, "feature", {f"{evil}.py".replace("/", "|"): evil}, author="alice")
    stage.gh.comment(REPO, 1, evil, actor="eve")
    await stage.gh.label(REPO, 1, evil, actor="alice")
    comments = [{"path": "a.py", "line": 3, "body": evil}]
    await stage.review(event="REQUEST_CHANGES", body=evil, comments=comments)
    check = {"title": evil, "summary": evil}
    head = stage.gh.pull(REPO, 1).head_sha
    run = {"name": evil, "head_sha": head, "conclusion": "failure", "output": check}
    await stage.call("POST", f"{REPO_PATH}/check-runs", run)
    for path in ("/", f"/{REPO}/pull/1"):
        page = await stage.http.get(path)
        assert page.status_code == 200
        assert "<script" not in page.text
        assert "&lt;script&gt;" in page.text
        assert "script-src" not in page.headers["content-security-policy"]
        assert "default-src 'none'" in page.headers["content-security-policy"]
    assert (await stage.http.get(f"/{REPO}/pull/1.diff")).text.startswith("diff --git")
    assert (await stage.http.get(f"/{REPO}/pull/9")).status_code == 404
    assert (await stage.http.get("/no/where/pull/1")).status_code == 404


async def test_page_shows_the_review(stage: Stage) -> None:
    """The page that the demo links shows verdict, threads and checks."""
    comments = [{"path": "a.py", "line": 3, "body": "inline remark"}]
    await stage.review(event="REQUEST_CHANGES", body="the summary", comments=comments)
    page = (await stage.http.get(f"/{REPO}/pull/1")).text
    for text in ("ward[bot]", "changes requested", "the summary", "inline remark", "a.py:3"):
        assert text in page


async def test_call_log(stage: Stage) -> None:
    """Every request is logged with its App, status and whether it created content."""
    await stage.review(event="APPROVE")
    await stage.call("GET", PULL_PATH, who="alice")
    await stage.call("GET", f"{REPO_PATH}/pulls/99")
    logged = [(c.method, c.path, c.status, c.app, c.creates_content) for c in stage.gh.calls]
    assert logged == [
        ("POST", f"{PULL_PATH}/reviews", 200, "ward", True),
        ("GET", PULL_PATH, 200, None, False),
        ("GET", f"{REPO_PATH}/pulls/99", 404, "ward", False),
    ]
    assert stage.gh.calls[1].actor == "alice"


async def test_rate_limit() -> None:
    """The headers count down; beyond the limit 403 until the hour is over."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    apps = (AppConfig(101, "ward"), AppConfig(102, "fix"))
    config = DoubleConfig(
        apps=apps, clock=lambda: now[0], rate_limit=2, token_lifetime_seconds=9999
    )
    async with staged(config) as stage:
        left = [
            (await stage.call("GET", PULL_PATH)).headers["x-ratelimit-remaining"] for _ in range(2)
        ]
        assert left == ["1", "0"]
        over = await stage.call("GET", PULL_PATH)
        assert over.status_code == 403
        assert over.json()["message"].startswith("API rate limit exceeded for installation ID")
        assert over.headers["x-ratelimit-remaining"] == "0"
        assert (await stage.call("GET", PULL_PATH, who="alice")).status_code == 200
        now[0] += timedelta(hours=1)
        assert (await stage.call("GET", PULL_PATH)).status_code == 200


async def test_secondary_limit() -> None:
    """Content creation is limited per minute where asked for; reading goes on."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    apps = (AppConfig(101, "ward"), AppConfig(102, "fix"))
    config = DoubleConfig(apps=apps, clock=lambda: now[0], content_per_minute=2)
    async with staged(config) as stage:
        for _ in range(2):
            assert (await stage.review(event="APPROVE")).status_code == 200
        over = await stage.review(event="APPROVE")
        assert (over.status_code, over.headers["retry-after"]) == (403, "60")
        assert "secondary rate limit" in over.json()["message"]
        assert (await stage.call("GET", PULL_PATH)).status_code == 200
        now[0] += timedelta(seconds=61)
        assert (await stage.review(event="APPROVE")).status_code == 200


def test_sockets_know_that_they_are_tcp() -> None:
    """Without `proto`, asyncio leaves Nagle's algorithm on and every answer waits 40 ms."""
    with _listening("127.0.0.1", 0) as sock:
        assert sock.proto == socket.IPPROTO_TCP


async def test_injected_failures(stage: Stage) -> None:
    """A failure before leaves nothing; one after has had its effect; both end."""
    limit = "You have exceeded a secondary rate limit."
    stage.gh.faults.fail_call("POST", "/reviews$", 403, limit, headers={"Retry-After": "7"})
    stage.gh.faults.fail_call("POST", "/reviews$", 502, after=True)
    first = await stage.review(event="APPROVE")
    assert (first.status_code, first.headers["retry-after"]) == (403, "7")
    assert stage.gh.pull(REPO, 1).reviews == ()
    second = await stage.review(event="APPROVE")
    assert second.status_code == 502
    assert len(stage.gh.pull(REPO, 1).reviews) == 1
    assert (await stage.review(event="APPROVE")).status_code == 200


@pytest.mark.parametrize("kept", [True, False], ids=["thread", "no-thread"])
async def test_a_comment_that_nobody_sees(stage: Stage, kept: bool) -> None:
    """The review is accepted; the comment on that line has none, or is not there. It ends.

    A number stays where GitHub's schema has one whatever happens."""
    stage.gh.faults.hide_comment("a.py", 3, kept=kept)
    comments = [{"path": "a.py", "line": line, "body": "x"} for line in (3, 4)]
    shown = []
    for _ in range(2):
        made = await stage.review(event="COMMENT", body="b", comments=comments)
        answer = await stage.call("GET", f"{PULL_PATH}/reviews/{made.json()['id']}/comments")
        assert all(isinstance(row["original_position"], int) for row in answer.json())
        shown.append([(row["line"], row["position"] is None) for row in answer.json()])
    assert shown == [[(None, True)] * kept + [(4, False)], [(3, False), (4, False)]]


async def test_starts_fast_and_leaves_nothing() -> None:
    """A double starts in well under half a second and removes its repositories."""
    async with GitHubDouble(DoubleConfig(apps=(AppConfig(101, "ward"),))):
        pass  # the key of App 101 exists from now on
    started = time.perf_counter()
    async with GitHubDouble(DoubleConfig(apps=(AppConfig(101, "ward"),))) as gh:
        took = time.perf_counter() - started
        root = gh.hub.git.root
        assert root.is_dir()
    assert took < 0.5
    assert not root.exists()


async def test_given_directory_is_kept(tmp_path: Path) -> None:
    """Repositories in a directory of the caller's stay there."""
    async with GitHubDouble(DoubleConfig(directory=tmp_path)) as gh:
        await gh.create_repository("acme", "kept", {"a": "a"})
    assert (tmp_path / "acme" / "kept.git" / "HEAD").exists()


async def test_two_doubles_side_by_side(stage: Stage) -> None:
    """Doubles share nothing: a token of one is unknown to the other."""
    async with staged() as other:
        headers = {"Authorization": f"Bearer {stage.token('ward')}"}
        assert (await other.http.get(PULL_PATH, headers=headers)).status_code == 401
        assert (await stage.http.get(PULL_PATH, headers=headers)).status_code == 200
