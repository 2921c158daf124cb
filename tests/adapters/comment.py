"""`comment`: one comment event, as a signed webhook to the running application and its worker."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
from pydantic import SecretStr

from app.domain.jobs import JobKind
from app.domain.pull_request import Permission
from app.domain.tasks import LineageState, OrderState
from app.git.mirror_folder import create
from app.jobs.dispatch import InProcessDispatcher
from app.jobs.retry import MAX_OUTAGE_ATTEMPTS
from app.main import create_app
from app.settings import Settings
from app.store.migrate import upgrade
from app.store.session import open_store
from tests.adapters.api_refusals import error_of
from tests.adapters.case import Case, only_knows
from tests.git.repos import BareRepo
from tests.handoff.stage import BASE, REVIEWER, Stage, account, open_stage
from tests.store.rows import REPOSITORY
from tests.webhooks.payloads import payload

_SECRET = "case"
_OURS = {"review": "review", "fix": "fix", "pause": "stop", "ask": "explain"}
"""The cases' stand-ins and the verbs they stand for."""
_ARGUMENTS = {"fix": " all", "explain": " F1"}
_REFUSED = re.compile(r"refuse|needs? write access|nothing was carried out", re.IGNORECASE)


async def check(case: Case, tmp_path: Path) -> None:
    only_knows(case.expect, "runs", "reply", "replies_at_most", "new_comments")
    upgrade(f"sqlite:///{tmp_path}/cases.db")
    BareRepo.create(tmp_path / "origin.git").commit(BASE)
    await create(tmp_path / "mirrors" / f"{REPOSITORY}.git")
    store = open_store(f"sqlite+aiosqlite:///{tmp_path}/cases.db")
    try:
        stage = await open_stage(store, tmp_path)
        stage.open(author="author-1")
        await stage.finds()
        await _post(stage, case.input)
        while await _waits(stage):
            await stage.later(hours=1)
        runs, said = await _runs(stage), stage.comments()
    finally:
        await store.close()
    expect = case.expect
    assert sorted(runs) == sorted(expect.get("runs", runs))
    assert len(said) == expect.get("new_comments", len(said))
    assert len(said) <= expect.get("replies_at_most", len(said))
    if "reply" in expect:
        assert _kind(said) == expect["reply"]
    elif not expect.get("runs", True):
        assert said == [], "what is no command gets no answer"


def spoken(text: str) -> str:
    """The case's words with our commands and our mention in place of the stand-ins."""

    def command(found: re.Match[str]) -> str:
        verb = _OURS[found["verb"]]
        alone = found["rest"].strip() == ""
        return f"/mergeward {verb}{_ARGUMENTS.get(verb, '') if alone else ''}{found['rest']}"

    # Who wants something of us says `/mergeward`; before a command that word is there already.
    text = re.sub(r"@review-app[ \t]+(?=/)", "", text).replace("@review-app", "/mergeward")
    return re.sub(rf"/(?P<verb>{'|'.join(_OURS)})(?P<rest>[^\r\n`|<]*)", command, text)


async def _post(stage: Stage, given: Mapping[str, Any]) -> None:
    """Deliver the event and let the workers do what it asks for."""
    _permit(stage, given["author"], str(given.get("permission", "none")))
    settings = Settings(
        reviewer_app_id=REVIEWER.app_id,
        reviewer_slug=REVIEWER.slug,
        reviewer_webhook_secret=SecretStr(_SECRET),
    )
    app = create_app(settings, InProcessDispatcher(), store=stage.store, clock=stage.clock)
    body = json.dumps(_payload(stage, given)).encode()
    headers = {
        "x-github-event": given["event"],
        "x-github-delivery": "one",
        "x-hub-signature-256": "sha256="
        + hmac.new(_SECRET.encode(), body, hashlib.sha256).hexdigest(),
    }
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://case.test") as client:
        answer = await client.post("/webhooks/github", content=body, headers=headers)
    assert answer.status_code == 202, answer.text
    await stage.run()


def _permit(stage: Stage, login: str, permission: str) -> None:
    """The real permission, or what the API answers when it is asked."""
    status = re.match(r"[45]\d\d", permission)
    if status is None:
        # The API tells the finer roles in the words of the old ones.
        told = {"maintain": "write", "triage": "read"}.get(permission, permission)
        stage.world.permissions[login] = Permission(told)
    elif status.group() != "404":  # a 404 is what strangers get: the forge port says NONE
        error = error_of({"status": int(status.group())}, stage.clock.now())
        for _ in range(MAX_OUTAGE_ATTEMPTS):
            stage.reviewer.fail_next("permission", error)


def _payload(stage: Stage, given: Mapping[str, Any]) -> dict[str, Any]:
    kind = given.get("author_type", "User")
    author = {**_account(given["author"]), "type": kind}
    editor = given.get("editor") or given.get("sender")
    body = spoken(given["body"])
    comment_id = stage.world.comment(stage.repo, 1, account(given["author"]), body)
    comment: dict[str, Any] = {"id": comment_id, "body": body, "user": author}
    if "author_association" in given:
        comment["author_association"] = given["author_association"]
    if "performed_via_github_app" in given:
        comment["performed_via_github_app"] = {"id": 77}
    changes = given.get("changes", {})
    if "body" in changes:
        changes = {"body": {"from": spoken(changes["body"]["from"])}}
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "issue_comment": lambda: {
            "issue": {
                "number": 1,
                "pull_request": {"url": "x"} if given.get("on_pull_request", True) else None,
            },
            "comment": comment,
        },
        "pull_request_review_comment": lambda: {"pull_request": {"number": 1}, "comment": comment},
        "pull_request_review": lambda: {"pull_request": {"number": 1}, "review": comment},
    }
    sender = _account(editor) if editor else author
    return payload(given["action"], sender=sender, changes=changes, **parts[given["event"]]())


def _account(login: str) -> dict[str, Any]:
    who = account(login)
    return {"id": who.id, "login": who.login, "type": who.kind.value}


async def _waits(stage: Stage) -> bool:
    """Whether the comment's job will be tried again."""
    return any(job.state.is_live for job in await stage.jobs(JobKind.HANDLE_COMMENT))


async def _runs(stage: Stage) -> list[str]:
    """The commands that were carried out, by the cases' names."""
    reviews = await stage.jobs(JobKind.REVIEW_PULL_REQUEST)
    orders = await stage.orders()
    told = stage.comments()
    done = {
        "review": bool(reviews),
        "fix": any(order.state is not OrderState.REFUSED for order in orders),
        "pause": (await stage.lineage()).state is LineageState.STOPPED,
        "ask": any("Next:" in text for text in told),
    }
    return [name for name, happened in done.items() if happened]


def _kind(said: list[str]) -> str:
    """What kind of answer the only comment of ours is."""
    if not said:
        return "none"
    (only,) = said
    if _REFUSED.search(only):
        return "refusal"
    return "help" if "A line of its own may say" in only else "answer"
