"""Webhook events: which Apps hear of what, and the payloads."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from app.sandbox.github import render_pulls as rp
from app.sandbox.github.gitstore import NOBODY, GitStore
from app.sandbox.github.hooks import Hooks, installation_ref
from app.sandbox.github.limits import Faults
from app.sandbox.github.pullgit import pull_facts
from app.sandbox.github.render import Json, Renderer
from app.sandbox.github.rules import allows
from app.sandbox.github.state import (
    Account,
    App,
    CheckRun,
    Installation,
    IssueComment,
    PullRequest,
    Repository,
    Review,
    ReviewComment,
    Thread,
)
from app.sandbox.github.world import World

# What an App must be allowed to read to be sent an event.
_READS = {
    "pull_request": "pull_requests",
    "pull_request_review": "pull_requests",
    "pull_request_review_comment": "pull_requests",
    "pull_request_review_thread": "pull_requests",
    "issue_comment": "issues",
    "push": "contents",
    "check_run": "checks",
    "check_suite": "checks",
}


@dataclass(frozen=True)
class Events:
    """Builds events and queues them for every App that is subscribed and installed."""

    world: World
    hooks: Hooks
    render: Renderer
    git: GitStore
    faults: Faults

    def emit(
        self,
        event: str,
        repository: Repository,
        sender: Account,
        payload: Json,
        only: App | None = None,
    ) -> None:
        """Queue an event for all who may hear it; GitHub gives all of them one GUID."""
        guid = str(uuid.uuid4())
        full = {
            **payload,
            "repository": self.render.repository(repository),
            "sender": self.render.user(sender),
        }
        for installation in self._listeners(event, repository, only):
            ref = {"installation": installation_ref(installation.id)}
            self._queue(installation.app, event, {**full, **ref}, guid)

    def _listeners(
        self, event: str, repository: Repository, only: App | None
    ) -> Iterable[Installation]:
        for installation in self.world.installations_on(repository):
            app = installation.app
            if installation.suspended_at is not None or only not in {None, app}:
                continue
            level = installation.permissions.get(_READS[event], "none")
            # Apps that may write checks are subscribed to their events without asking.
            automatic = event.startswith("check_") and allows(level, "write")
            if automatic or (event in app.events and allows(level, "read")):
                yield installation

    def _queue(self, app: App, event: str, payload: Json, guid: str) -> None:
        fault = self.faults.webhook(event, payload.get("action"))
        if fault == "drop":
            return
        delivery = self.hooks.enqueue(app, event, payload, guid=guid)
        if fault == "double" and delivery is not None:
            self.hooks.redeliver(delivery)

    def ping(self, app: App) -> None:
        """The first event of a new webhook."""
        hook = {
            "type": "App",
            "id": app.hook_id,
            "name": "web",
            "active": True,
            "events": list(app.events),
            "config": {"content_type": "json", "url": app.webhook_url, "insecure_ssl": "0"},
            "app_id": app.id,
        }
        payload = {"zen": "Keep it logically awesome.", "hook_id": app.hook_id, "hook": hook}
        self._queue(app, "ping", payload, str(uuid.uuid4()))

    def installation(self, action: str, installation: Installation, sender: Account) -> None:
        """`installation` events go to the App concerned, subscribed or not."""
        payload: Json = {
            "action": action,
            "installation": self.render.installation(installation),
            "sender": self.render.user(sender),
        }
        if action in {"created", "deleted"}:
            covered = self.world.covered(installation)
            payload["repositories"] = [self._short(r) for r in covered]
            payload["requester"] = None
        self._queue(installation.app, "installation", payload, str(uuid.uuid4()))

    def installation_repositories(
        self,
        installation: Installation,
        sender: Account,
        added: Iterable[Repository] = (),
        removed: Iterable[Repository] = (),
    ) -> None:
        """Repositories joined or left an installation."""
        more = [self._short(r) for r in added]
        payload: Json = {
            "action": "added" if more else "removed",
            "installation": self.render.installation(installation),
            "repository_selection": "all" if installation.repositories is None else "selected",
            "repositories_added": more,
            "repositories_removed": [self._short(r) for r in removed],
            "requester": None,
            "sender": self.render.user(sender),
        }
        self._queue(installation.app, "installation_repositories", payload, str(uuid.uuid4()))

    def _short(self, repository: Repository) -> Json:
        whole = self.render.repository(repository)
        return {name: whole[name] for name in ("id", "node_id", "name", "full_name", "private")}

    async def pull_request(
        self, action: str, pull: PullRequest, sender: Account, extra: Json | None = None
    ) -> None:
        """A `pull_request` event; `extra` holds `before`/`after`, `label` or `changes`."""
        facts = await pull_facts(self.git, pull)
        payload: Json = {
            "action": action,
            "number": pull.number,
            "pull_request": rp.full_pull(self.render, pull, facts),
            **(extra or {}),
        }
        self.emit("pull_request", pull.repository, sender, payload)

    def review(self, action: str, pull: PullRequest, item: Review, sender: Account) -> None:
        """`submitted` or `dismissed`; webhooks spell the state in lower case."""
        shown = rp.review(self.render, pull, item)
        shown["state"] = item.state.lower()
        shown["body"] = item.body or None
        self._about_pull("pull_request_review", action, pull, sender, {"review": shown})

    def review_comment(
        self, action: str, pull: PullRequest, item: ReviewComment, sender: Account
    ) -> None:
        shown = rp.review_comment(self.render, pull, item)
        event = "pull_request_review_comment"
        self._about_pull(event, action, pull, sender, {"comment": shown})

    def thread(self, action: str, pull: PullRequest, item: Thread, sender: Account) -> None:
        shown = rp.thread(self.render, pull, item)
        self._about_pull("pull_request_review_thread", action, pull, sender, {"thread": shown})

    def _about_pull(
        self, event: str, action: str, pull: PullRequest, sender: Account, extra: Json
    ) -> None:
        shown = rp.simple_pull(self.render, pull)
        payload: Json = {"action": action, "pull_request": shown, **extra}
        self.emit(event, pull.repository, sender, payload)

    def issue_comment(
        self, action: str, pull: PullRequest, item: IssueComment, sender: Account
    ) -> None:
        payload: Json = {
            "action": action,
            "issue": rp.issue_of(self.render, pull),
            "comment": self.render.issue_comment(pull, item),
        }
        self.emit("issue_comment", pull.repository, sender, payload)

    def check_run(
        self,
        action: str,
        repository: Repository,
        item: CheckRun,
        sender: Account,
        button: str | None = None,
    ) -> None:
        """Clicks and re-runs reach the owning App only."""
        payload: Json = {
            "action": action,
            "check_run": rp.check_run(self.render, repository, item),
        }
        if button is not None:
            payload["requested_action"] = {"identifier": button}
        own = action in {"rerequested", "requested_action"}
        self.emit("check_run", repository, sender, payload, item.app if own else None)

    async def push(
        self, repository: Repository, ref: str, before: str, after: str, sender: Account
    ) -> None:
        """A branch moved; `commits` is left empty. Apps that write checks get a suite, too."""
        moved = NOBODY not in {before, after}
        forced = moved and not await self.git.is_ancestor(repository.path, before, after)
        payload: Json = {
            "ref": ref,
            "before": before,
            "after": after,
            "created": before == NOBODY,
            "deleted": after == NOBODY,
            "forced": forced,
            "base_ref": None,
            "compare": f"{self.render.url}/{repository.full_name}/compare/{before}...{after}",
            "commits": [],
            "head_commit": None,
            "pusher": {"name": sender.login, "email": f"{sender.login}@users.noreply.github.com"},
        }
        self.emit("push", repository, sender, payload)
        if after != NOBODY:
            self._check_suites(repository, ref, before, after, sender)

    def _check_suites(
        self, repository: Repository, ref: str, before: str, after: str, sender: Account
    ) -> None:
        """GitHub asks every App that may write checks for a suite at every push."""
        for installation in self.world.installations_on(repository):
            if not allows(installation.permissions.get("checks", "none"), "write"):
                continue
            app = installation.app
            suite = repository.suites.setdefault((after, app.id), self.world.next_id())
            shown = rp.check_suite(self.render, repository, app, suite, after)
            spot = {"head_branch": ref.removeprefix("refs/heads/"), "before": before}
            payload = {"action": "requested", "check_suite": {**shown, **spot}}
            self.emit("check_suite", repository, sender, payload, app)
