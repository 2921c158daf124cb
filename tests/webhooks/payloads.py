"""Payloads that are valid by default, so that a test states only its difference."""

from __future__ import annotations

from typing import Any

REPOSITORY = 7_000_000_001
INSTALLATION = 5_000_000_001
REVIEWER_APP = 11
FIXER_APP = 12


def account(login: str = "author-1", kind: str = "User", number: int = 101) -> dict[str, Any]:
    return {"id": number, "login": login, "type": kind, "avatar_url": "https://example.com/a"}


def repository(**difference: Any) -> dict[str, Any]:
    return {
        "id": REPOSITORY,
        "name": "shop",
        "full_name": "acme/shop",
        "owner": account("acme", "Organization", 1),
        "default_branch": "main",
        "private": True,
        **difference,
    }


def payload(action: str, **parts: Any) -> dict[str, Any]:
    return {
        "action": action,
        "repository": repository(),
        "installation": {"id": INSTALLATION, "node_id": "x"},
        "sender": account(),
        **parts,
    }


def pull_request(action: str = "opened", sha: str = "a1", **difference: Any) -> dict[str, Any]:
    return payload(
        action,
        number=7,
        pull_request={
            "number": 7,
            "head": {"ref": "feature", "sha": sha},
            "base": {"ref": "main", "sha": "b1"},
            "updated_at": "2026-03-01T12:00:00Z",
            "labels": [{"new_field": {"from": "tomorrow"}}],
        },
        **difference,
    )


def comment(body: str = "/mergeward review", **difference: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "issue": {"number": 7, "pull_request": {"url": "…"}},
        "comment": {"id": 900, "body": body, "user": account("maintainer-1")},
        "sender": account("maintainer-1"),
    }
    return payload("created", **{**parts, **difference})


def thread_comment(body: str = "/mergeward review") -> dict[str, Any]:
    return payload(
        "created",
        pull_request={"number": 7},
        comment={"id": 901, "body": body, "user": account("maintainer-1")},
        sender=account("maintainer-1"),
    )


def review(body: str | None = None, action: str = "submitted") -> dict[str, Any]:
    return payload(
        action,
        pull_request={"number": 7},
        review={"id": 902, "body": body, "user": account("maintainer-1")},
        sender=account("maintainer-1"),
    )


def check_run(action: str = "requested_action", app: int = REVIEWER_APP) -> dict[str, Any]:
    return payload(
        action,
        check_run={
            "id": 55,
            "head_sha": "a1",
            "external_id": "run:3",
            "app": {"id": app, "events": ["a_new_event"]},
            "pull_requests": [{"number": 7}],
        },
        requested_action={"identifier": "rereview"},
    )


def installation(action: str = "created", **difference: Any) -> dict[str, Any]:
    return {
        "action": action,
        "installation": {"id": INSTALLATION, "account": account("acme", "Organization", 1)},
        "repositories": [{"id": REPOSITORY, "name": "shop", "full_name": "acme/shop"}],
        "sender": account(),
        **difference,
    }


def installation_repositories(**difference: Any) -> dict[str, Any]:
    return {
        "action": "added",
        "installation": {"id": INSTALLATION, "account": account("acme", "Organization", 1)},
        "repositories_added": [],
        "repositories_removed": [],
        **difference,
    }
