"""Webhooks: signed, in order, to whom they belong, and redelivered only on demand."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.sandbox.github.spec import violations
from tests.sandbox.github.stage import PULL_PATH, REPO, REPO_PATH, SECRET, Received, Receiver, Stage

Act = Callable[[Stage], Awaitable[object]]


def _signed(received: Received) -> bool:
    """Checked with the standard library alone."""
    mac = hmac.new(SECRET.encode(), received.raw, hashlib.sha256).hexdigest()
    return received.headers["x-hub-signature-256"] == f"sha256={mac}"


def _names(receiver: Receiver) -> list[tuple[str, str | None]]:
    return [
        (r.headers["x-github-event"], json.loads(r.raw).get("action")) for r in receiver.received
    ]


async def test_delivery(hooked: Stage, receiver: Receiver) -> None:
    """Signature over the raw bytes, GitHub's headers, a payload with the known members."""
    hooked.gh.comment(REPO, 1, "hello", actor="alice")
    await hooked.gh.drain()
    [received] = receiver.received
    assert _signed(received)
    assert not _signed(Received(received.headers, received.raw + b" "))
    headers = received.headers
    assert headers["user-agent"].startswith("GitHub-Hookshot/")
    assert headers["content-type"] == "application/json"
    assert headers["x-github-hook-installation-target-id"] == "101"
    assert headers["x-github-hook-installation-target-type"] == "integration"
    assert len(headers["x-github-delivery"]) == 36
    payload = json.loads(received.raw)
    assert (payload["action"], payload["comment"]["body"]) == ("created", "hello")
    assert payload["issue"]["pull_request"]["url"].endswith(PULL_PATH)
    assert payload["repository"]["full_name"] == REPO
    assert payload["sender"]["login"] == "alice"
    assert set(payload["installation"]) == {"id", "node_id"}


async def _pending_review(stage: Stage) -> None:
    await stage.review(body="x")


async def _reopen(stage: Stage) -> None:
    await stage.gh.close(REPO, 1, actor="alice")
    await stage.gh.reopen(REPO, 1, actor="alice")


async def _label(stage: Stage) -> None:
    await stage.gh.label(REPO, 1, "x", actor="bob")
    await stage.gh.label(REPO, 1, "x", actor="bob", remove=True)


async def _draft(stage: Stage) -> None:
    await stage.gh.set_draft(REPO, 1, actor="alice", draft=True)
    await stage.gh.set_draft(REPO, 1, actor="alice", draft=False)


async def _thread(stage: Stage) -> None:
    await stage.review(
        event="COMMENT", body="b", comments=[{"path": "a.py", "line": 3, "body": "x"}]
    )
    thread = stage.gh.pull(REPO, 1).threads[0].node_id
    stage.gh.resolve_thread(REPO, 1, thread, actor="bob")
    stage.gh.resolve_thread(REPO, 1, thread, actor="bob")
    stage.gh.resolve_thread(REPO, 1, thread, actor="bob", resolved=False)


async def _check(stage: Stage) -> None:
    body = {"name": "n", "head_sha": stage.head, "status": "in_progress"}
    run = (await stage.call("POST", f"{REPO_PATH}/check-runs", body)).json()["id"]
    await stage.call("PATCH", f"{REPO_PATH}/check-runs/{run}", {"conclusion": "success"})
    stage.gh.click(REPO, run, actor="bob", button="fix")
    stage.gh.click(REPO, run, actor="bob")


async def _rebase(stage: Stage) -> None:
    await stage.gh.push(REPO, "release", {"r": "r\n"}, author="bob")
    await stage.gh.edit(REPO, 1, actor="alice", base="release", title="Now")


PULL, REVIEW = "pull_request", "pull_request_review"
COMMENT, THREAD = "pull_request_review_comment", "pull_request_review_thread"
SUITE = ("check_suite", "requested")
EVENTS: list[tuple[str, Act, list[tuple[str, str | None]]]] = [
    (
        "push to a head",
        lambda s: s.gh.push(REPO, "feature", {"b.py": "2\n"}, author="alice"),
        [("push", None), SUITE, (PULL, "synchronize")],
    ),
    (
        "merge",
        lambda s: s.gh.merge(REPO, 1, actor="bob"),
        [(PULL, "closed"), ("push", None), SUITE],
    ),
    ("close and reopen", _reopen, [(PULL, "closed"), (PULL, "reopened")]),
    ("labels", _label, [(PULL, "labeled"), (PULL, "unlabeled")]),
    ("draft", _draft, [(PULL, "converted_to_draft"), (PULL, "ready_for_review")]),
    (
        "review",
        lambda s: s.gh.review(REPO, 1, "APPROVE", actor="bob"),
        [(REVIEW, "submitted")],
    ),
    ("pending review", _pending_review, []),
    (
        "threads",
        _thread,
        [
            (REVIEW, "submitted"),
            (COMMENT, "created"),
            (THREAD, "resolved"),
            (THREAD, "unresolved"),
        ],
    ),
    (
        "check run",
        _check,
        [
            ("check_run", "created"),
            ("check_run", "completed"),
            ("check_run", "requested_action"),
            ("check_run", "rerequested"),
        ],
    ),
    ("new base", _rebase, [("push", None), SUITE, (PULL, "edited")]),
    (
        "deleted branch",
        lambda s: s.gh.delete_branch(REPO, "feature", "alice"),
        [("push", None), (PULL, "closed")],
    ),
]


@pytest.mark.parametrize(("act", "names"), [e[1:] for e in EVENTS], ids=[e[0] for e in EVENTS])
async def test_events(
    hooked: Stage, receiver: Receiver, act: Act, names: list[tuple[str, str | None]]
) -> None:
    """Each act tells exactly these events, in this order, all signed."""
    await act(hooked)
    await hooked.gh.drain()
    assert _names(receiver) == names
    assert all(_signed(received) for received in receiver.received)


def _last(receiver: Receiver) -> Any:
    return json.loads(receiver.received[-1].raw)


async def test_synchronize_payload(hooked: Stage, receiver: Receiver) -> None:
    """`before` and `after` are the heads; the pull request is the new one."""
    sha = await hooked.gh.push(REPO, "feature", {"b.py": "2\n"}, author="alice")
    await hooked.gh.drain()
    payload = _last(receiver)
    assert (payload["before"], payload["after"]) == (hooked.head, sha)
    assert payload["pull_request"]["head"]["sha"] == sha
    assert payload["number"] == 1


@pytest.mark.parametrize("force", [False, True], ids=["forward", "forced"])
async def test_push_payload(hooked: Stage, receiver: Receiver, force: bool) -> None:
    """A push tells ref, commits and whether history was rewritten."""
    sha = await hooked.gh.push(REPO, "feature", {"b.py": "2\n"}, author="alice", force=force)
    await hooked.gh.drain()
    push, suite = (json.loads(received.raw) for received in receiver.received[:2])
    assert (push["ref"], push["before"], push["after"]) == ("refs/heads/feature", hooked.head, sha)
    assert (push["forced"], push["created"], push["deleted"]) == (force, False, False)
    assert suite["check_suite"]["head_sha"] == sha
    assert suite["check_suite"]["app"]["slug"] == "ward"


async def test_merged_payload(hooked: Stage, receiver: Receiver) -> None:
    """A merge is `closed` with `merged: true`, by whom and as which commit."""
    sha = await hooked.gh.merge(REPO, 1, actor="bob")
    await hooked.gh.drain()
    payload = json.loads(receiver.received[0].raw)
    pull = payload["pull_request"]
    assert (pull["merged"], pull["merge_commit_sha"], pull["merged_by"]["login"]) == (
        True,
        sha,
        "bob",
    )
    path = "/repos/{owner}/{repo}/pulls/{pull_number}"
    assert violations("GET", path, 200, pull) == []


async def test_base_change_payload(hooked: Stage, receiver: Receiver) -> None:
    """A changed base is `edited` with what it was."""
    old = hooked.gh.pull_request(REPO, 1).base_sha
    await _rebase(hooked)
    await hooked.gh.drain()
    changes = _last(receiver)["changes"]
    assert changes["base"] == {"ref": {"from": "main"}, "sha": {"from": old}}
    assert changes["title"] == {"from": "A change"}


async def test_review_state_is_lower_case(hooked: Stage, receiver: Receiver) -> None:
    """Webhooks spell review states in lower case, REST in upper case."""
    answer = await hooked.review(event="REQUEST_CHANGES", body="no")
    await hooked.gh.drain()
    assert answer.json()["state"] == "CHANGES_REQUESTED"
    assert _last(receiver)["review"]["state"] == "changes_requested"
    path = f"{PULL_PATH}/reviews/{answer.json()['id']}/dismissals"
    await hooked.call("PUT", path, {"message": "m"})
    await hooked.gh.drain()
    assert (_last(receiver)["action"], _last(receiver)["review"]["state"]) == (
        "dismissed",
        "dismissed",
    )


async def test_own_acts_come_back(hooked: Stage, receiver: Receiver) -> None:
    """What an App does with its token returns to it as events of its own bot."""
    await hooked.call("POST", f"{REPO_PATH}/issues/1/comments", {"body": "mine"})
    await hooked.gh.drain()
    assert _last(receiver)["sender"]["login"] == "ward[bot]"
    assert _last(receiver)["comment"]["performed_via_github_app"]["id"] == 101


async def test_button(hooked: Stage, receiver: Receiver) -> None:
    """A click names the button and the person, and goes to the owning App."""
    await _check(hooked)
    await hooked.gh.drain()
    clicked = json.loads(receiver.received[2].raw)
    assert clicked["requested_action"] == {"identifier": "fix"}
    assert clicked["sender"]["login"] == "bob"


async def test_clicks_go_to_the_owner_only(hooked: Stage) -> None:
    """Other Apps hear of a run's making and end, not of clicks and re-runs."""
    fix = next(i for i in hooked.gh.hub.world.installations.values() if i.app.slug == "fix")
    hooked.gh.accept_permissions(fix, {"checks": "write"})
    hooked.gh.set_webhook("fix", hooked.gh.app("ward").webhook_url, SECRET)
    await _check(hooked)
    await hooked.gh.drain()
    told = [d.action for d in hooked.gh.deliveries if d.event == "check_run" and d.app is fix.app]
    assert told == ["created", "completed"]


async def test_one_event_has_one_guid_for_all_apps(hooked: Stage, receiver: Receiver) -> None:
    """Two Apps hear of the same event under the same delivery GUID, each with its own target."""
    hooked.gh.set_webhook("fix", receiver.url, SECRET)
    await hooked.gh.drain()
    receiver.received.clear()
    hooked.gh.comment(REPO, 1, "x", actor="alice")
    await hooked.gh.drain()
    assert len({r.headers["x-github-delivery"] for r in receiver.received}) == 1
    targets = {r.headers["x-github-hook-installation-target-id"] for r in receiver.received}
    assert targets == {"101", "102"}


async def test_installation_events(hooked: Stage, receiver: Receiver) -> None:
    """Installing, suspending, adding a repository and uninstalling are told without asking."""
    await hooked.gh.create_repository("other", "one", {})
    await hooked.gh.create_repository("other", "two", {})
    made = hooked.gh.install("ward", "other", ["other/one"])
    hooked.gh.add_repository(made, "other/two")
    hooked.gh.accept_permissions(made, {"metadata": "read"})
    hooked.gh.suspend(made)
    hooked.gh.suspend(made, suspended=False)
    hooked.gh.uninstall(made)
    await hooked.gh.drain()
    assert _names(receiver) == [
        ("installation", "created"),
        ("installation_repositories", "added"),
        ("installation", "new_permissions_accepted"),
        ("installation", "suspend"),
        ("installation", "unsuspend"),
        ("installation", "deleted"),
    ]
    created, added = (json.loads(r.raw) for r in receiver.received[:2])
    assert [r["full_name"] for r in created["repositories"]] == ["other/one"]
    assert [r["full_name"] for r in added["repositories_added"]] == ["other/two"]
    assert created["installation"]["app_slug"] == "ward"


async def test_who_is_not_told(hooked: Stage, receiver: Receiver) -> None:
    """No events while suspended, without the permission, or from repositories not covered."""
    [ward] = [i for i in hooked.gh.hub.world.installations.values() if i.app.slug == "ward"]
    await hooked.gh.create_repository("other", "one", {})
    await hooked.gh.push("other/one", "main", {"x": "x\n"}, author="bob")
    ward.permissions.pop("issues")
    hooked.gh.comment(REPO, 1, "x", actor="alice")
    ward.permissions["issues"] = "read"
    hooked.gh.suspend(ward)
    hooked.gh.comment(REPO, 1, "x", actor="alice")
    await hooked.gh.drain()
    assert _names(receiver) == [("installation", "suspend")]


async def test_failed_delivery_is_listed_and_redelivered(hooked: Stage, receiver: Receiver) -> None:
    """No retry by itself; the list shows the failure; an attempt sends the same bytes and GUID."""
    receiver.status = 500
    hooked.gh.comment(REPO, 1, "x", actor="alice")
    await hooked.gh.drain()
    assert len(receiver.received) == 1
    listed = await hooked.call("GET", "/app/hook/deliveries?per_page=100", who="jwt:ward")
    assert violations("GET", "/app/hook/deliveries", 200, listed.json()) == []
    newest = listed.json()[0]
    assert (newest["status"], newest["status_code"]) == ("Invalid HTTP Response: 500", 500)
    assert (newest["event"], newest["redelivery"]) == ("issue_comment", False)
    receiver.status = 202
    path = f"/app/hook/deliveries/{newest['id']}"
    whole = await hooked.call("GET", path, who="jwt:ward")
    described = "/app/hook/deliveries/{delivery_id}"
    assert violations("GET", described, 200, whole.json()) == []
    assert (await hooked.call("POST", f"{path}/attempts", who="jwt:ward")).status_code == 202
    await hooked.gh.drain()
    first, second = receiver.received
    assert (first.raw, first.headers["x-github-delivery"]) == (
        second.raw,
        second.headers["x-github-delivery"],
    )
    again = (await hooked.call("GET", "/app/hook/deliveries", who="jwt:ward")).json()[0]
    assert (again["status"], again["redelivery"], again["guid"]) == ("OK", True, newest["guid"])


async def test_deliveries_page_by_cursor(hooked: Stage) -> None:
    """`Link` leads through all deliveries, newest first; other Apps' are not shown."""
    path: str | None = "/app/hook/deliveries?per_page=2"
    ids: list[int] = []
    while path:
        answer = await hooked.call("GET", path, who="jwt:ward")
        ids += [item["id"] for item in answer.json()]
        path = answer.links.get("next", {}).get("url")
    assert ids == [d.id for d in reversed(hooked.gh.deliveries)]
    assert (await hooked.call("GET", "/app/hook/deliveries", who="jwt:fix")).json() == []


async def test_unreachable_receiver(stage: Stage) -> None:
    """A refused connection is a recorded failure, not an error of the double."""
    stage.gh.set_webhook("ward", "http://127.0.0.1:9/nobody", SECRET)
    await stage.gh.drain()
    [ping] = stage.gh.deliveries
    assert (ping.event, ping.status_code) == ("ping", 502)


async def test_faults(hooked: Stage, receiver: Receiver) -> None:
    """Deliveries can be lost or doubled on demand."""
    hooked.gh.faults.drop_webhook("issue_comment")
    hooked.gh.comment(REPO, 1, "lost", actor="alice")
    hooked.gh.faults.double_webhook("issue_comment", "created")
    hooked.gh.comment(REPO, 1, "twice", actor="alice")
    hooked.gh.comment(REPO, 1, "once", actor="alice")
    await hooked.gh.drain()
    bodies = [json.loads(r.raw)["comment"]["body"] for r in receiver.received]
    assert bodies == ["twice", "twice", "once"]
    assert len({r.headers["x-github-delivery"] for r in receiver.received}) == 2
