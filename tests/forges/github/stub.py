"""A GitHub of few words: answers from a table, and a record of every request it got."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from pydantic import SecretStr

from app.clock import FixedClock
from app.domain.jobs import AppRole
from app.domain.pull_request import RepoRef
from app.forges.github.app import GitHubApp, Host
from app.forges.github.writes import GitHubForge
from app.settings import AppCredentials

NOW = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
REPO = RepoRef(installation_id=5, repository_id=7, owner="acme", name="shop")
TOKENS = "/app/installations/5/access_tokens"
BOT = {"id": 9011, "login": "mergeward[bot]", "type": "Bot"}
PULL = {
    "number": 1,
    "title": "Add search",
    "state": "open",
    "user": {"id": 3, "login": "alice", "type": "User"},
    "head": {"ref": "feature", "sha": "a" * 40, "repo": {"full_name": "acme/shop"}},
    "base": {"ref": "main", "sha": "b" * 40, "repo": {"default_branch": "main"}},
}

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


@dataclass
class Stub:
    """Answers of one path come in order; the last one stays."""

    answers: dict[tuple[str, str], list[Answer]] = field(default_factory=dict)
    requests: list[httpx.Request] = field(default_factory=list)
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOW))
    slept: list[float] = field(default_factory=list)
    lifetime: timedelta = timedelta(hours=1)
    minted: int = 0

    def on(self, method: str, path: str, *answers: Answer) -> Stub:
        self.answers[method, path] = list(answers)
        return self

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        key = request.method, request.url.raw_path.decode().partition("?")[0]
        known = self.answers.get(key)
        if known is None:
            return self._default(*key)
        answer = known[0] if len(known) == 1 else known.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response):
            return httpx.Response(
                answer.status_code, headers=answer.headers, content=answer.content
            )
        return answer(request)

    def _default(self, method: str, path: str) -> httpx.Response:
        if (method, path) == ("POST", TOKENS):
            return self.mint({"contents": "read", "pull_requests": "write", "issues": "write"})
        if (method, path) == ("GET", "/app"):
            return ok({"id": 11, "slug": "mergeward"})
        if (method, path) == ("GET", "/app/installations"):
            return ok([{"id": 5, "account": {"id": 1, "login": "acme", "type": "Organization"}}])
        if (method, path) == ("GET", "/users/mergeward%5Bbot%5D"):
            return ok(BOT)
        return httpx.Response(404, json={"message": "Not Found"})

    def mint(self, permissions: dict[str, str]) -> httpx.Response:
        self.minted += 1
        expires = (self.clock.now() + self.lifetime).strftime("%Y-%m-%dT%H:%M:%S.500Z")
        token = {"token": f"ghs_{self.minted}_secret", "expires_at": expires}
        return httpx.Response(201, json={**token, "permissions": permissions})

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.move_to(self.clock.now() + timedelta(seconds=seconds))

    def paths(self, *methods: str) -> list[str]:
        """`METHOD path` of the requests, tokens and identity left out."""
        mine = [r for r in self.requests if r.url.path.startswith(("/repos", "/graphql"))]
        wanted = methods or ("GET", "POST", "PATCH", "PUT", "DELETE")
        return [f"{r.method} {r.url.path}" for r in mine if r.method in wanted]

    def app(self, key: str, *, role: AppRole = AppRole.REVIEWER, **host: Any) -> GitHubApp:
        credentials = AppCredentials(role, 11, SecretStr(key))
        transport = httpx.MockTransport(self.handle)
        settings = {"api_url": "https://api.test", "read_retries": (0.0, 0.0), **host}
        return GitHubApp(credentials, Host(transport=transport, **settings), self.clock, self.sleep)

    def forge(self, key: str, **host: Any) -> GitHubForge:
        return GitHubForge(self.app(key, **host))


def ok(body: object, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(status, json=body, headers=headers)


def no(status: int, message: str = "", *errors: object, **headers: str) -> httpx.Response:
    """A refusal in GitHub's form."""
    body: dict[str, object] = {"message": message}
    if errors:
        body["errors"] = list(errors)
    dashed = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json=body, headers=dashed)
