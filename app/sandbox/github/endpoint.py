"""How an API request becomes a call of one handler: who, which repository, allowed or not."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.sandbox.github import rules
from app.sandbox.github.errors import ApiError, bad_credentials, forbidden, not_found
from app.sandbox.github.identity import Actor
from app.sandbox.github.state import Account, ApiCall, PullRequest, Repository

if TYPE_CHECKING:
    from app.sandbox.github.hub import Hub

VERSIONS = ("2022-11-28", "2026-03-10")
_DROPPED_SINCE_2026 = frozenset({"has_downloads", "use_squash_pr_title_as_default"})


class Auth(Enum):
    """What a route accepts as credentials."""

    JWT = "jwt"
    TOKEN = "token"  # noqa: S105 - a kind of credential, not one
    OPTIONAL = "optional"


@dataclass(frozen=True)
class Reply:
    """What a handler answers; `text` replaces the JSON body."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None


@dataclass
class Call:
    """One authorised request. `repo` raises KeyError on routes without a repository."""

    hub: Hub
    request: Request
    actor: Actor
    body: Mapping[str, Any]
    repository: Repository | None

    @property
    def repo(self) -> Repository:
        if self.repository is None:
            raise KeyError("this route names no repository")
        return self.repository

    @property
    def account(self) -> Account:
        """The user or bot that acts."""
        if self.actor.account is None:
            raise bad_credentials()
        return self.actor.account

    @cached_property
    def pull(self) -> PullRequest:
        """The pull request that the path names; 404 when there is none."""
        return self.repo.pulls.get(self.number("number")) or _raise(not_found())

    def number(self, name: str) -> int:
        return int(self.request.path_params[name])

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def text(self, name: str) -> str | None:
        """A string of the body; None when missing or null; 422 when of another type."""
        value = self.body.get(name)
        if value is None or isinstance(value, str):
            return value
        raise invalid_request(f"For 'properties/{name}', {value!r} is not a string.")

    @property
    def page_size(self) -> int:
        """`per_page`: 30 unless asked, 1 to 100."""
        return min(max(_integer(self.query("per_page"), 30), 1), 100)

    def page(self, items: Sequence[Any], wrap: str | None = None) -> Reply:
        """One page of `items` with GitHub's Link header; `wrap` names the list in an object."""
        size = self.page_size
        page = max(_integer(self.query("page"), 1), 1)
        shown = list(items[(page - 1) * size : page * size])
        last = max((len(items) + size - 1) // size, 1)
        link = self._links(page, last)
        headers = {"Link": link} if link else {}
        body = {"total_count": len(items), wrap: shown} if wrap else shown
        return Reply(200, body, headers)

    def _links(self, page: int, last: int) -> str:
        targets: dict[str, int] = {}
        if page > 1:
            targets |= {"prev": page - 1}
        if page < last:
            targets |= {"next": page + 1, "last": last}
        if page > 1:
            targets |= {"first": 1}
        url = f"{self.hub.url}{self.request.url.path}"
        query = dict(self.request.query_params)
        return ", ".join(
            f'<{url}?{urlencode({**query, "page": str(n)})}>; rel="{rel}"'
            for rel, n in targets.items()
        )


Handler = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True)
class Endpoint:
    """A route and who may use it.

    `needs` is in the notation of `X-Accepted-GitHub-Permissions`; `human` is the collaborator
    level that a person needs, None means Apps only.
    """

    method: str
    path: str
    handler: Handler
    needs: str
    human: str | None
    auth: Auth
    creates: bool


class Endpoints(list[Endpoint]):
    """The routes of one module, collected by a decorator."""

    def add(
        self,
        method: str,
        path: str,
        needs: str = "metadata=read",
        *,
        human: str | None = "read",
        auth: Auth = Auth.TOKEN,
        creates: bool = False,
    ) -> Callable[[Handler], Handler]:
        """Register the decorated handler; `creates` marks content-creating requests."""

        def register(handler: Handler) -> Handler:
            self.append(Endpoint(method, path, handler, needs, human, auth, creates))
            return handler

        return register


def routes(hub: Hub, endpoints: Sequence[Endpoint]) -> list[Route]:
    """Starlette routes for all endpoints."""
    return [Route(e.path, _asgi(hub, e), methods=[e.method]) for e in endpoints]


def _asgi(hub: Hub, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        started = time.perf_counter()
        actor = Actor(None)
        try:
            actor = hub.identity.actor(request.headers.get("authorization"))
            reply = await _guarded(hub, endpoint, request, actor)
        except ApiError as error:
            reply = Reply(error.status, error.body(), error.headers)
        _record(hub, endpoint, request, actor, reply, time.perf_counter() - started)
        return _response(hub, request, actor, reply)

    return answer


async def _guarded(hub: Hub, endpoint: Endpoint, request: Request, actor: Actor) -> Reply:
    _check_version(request)
    _check_kind(endpoint, actor)
    hub.limits.spend(actor, creates=endpoint.creates)
    repository = _repository(hub, endpoint, request, actor)
    before = hub.faults.before_call(request.method, request.url.path)
    if before is not None:
        raise before
    call = Call(hub, request, actor, await _body(request), repository)
    reply = await endpoint.handler(call)
    after = hub.faults.after_call(request.method, request.url.path)
    if after is not None:
        raise after
    return reply


def _check_version(request: Request) -> None:
    version = request.headers.get("x-github-api-version", VERSIONS[0])
    if version not in VERSIONS:
        known = ", ".join(VERSIONS)
        raise ApiError(400, f"Unsupported API version {version!r}; supported: {known}")


def _check_kind(endpoint: Endpoint, actor: Actor) -> None:
    is_jwt = actor.app is not None and actor.token is None
    match endpoint.auth:
        case Auth.JWT if not is_jwt:
            raise ApiError(401, "A JSON web token could not be decoded")
        case Auth.TOKEN if actor.account is None:
            raise ApiError(401, "Requires authentication")
        case Auth.TOKEN if is_jwt:
            raise bad_credentials()
        case _:
            return


def _repository(hub: Hub, endpoint: Endpoint, request: Request, actor: Actor) -> Repository | None:
    params = request.path_params
    if "owner" not in params or "repo" not in params:
        return None
    repository = hub.world.repository(f"{params['owner']}/{params['repo']}")
    if repository is None:
        raise not_found()
    if endpoint.auth is not Auth.JWT:
        check_access(hub, repository, actor, endpoint.needs, endpoint.human)
    if repository.archived and endpoint.method != "GET":
        raise ApiError(403, "Repository was archived so is read-only.")
    return repository


def check_access(
    hub: Hub, repository: Repository, actor: Actor, needs: str, human: str | None
) -> None:
    """404 when the caller may not know the repository, 403 when only the permission lacks."""
    if actor.token is not None:
        _check_token(hub, repository, actor, needs)
        return
    level = repository.level_of(actor.account) if actor.account else "none"
    if level == "none" and repository.private:
        raise not_found()
    if human is None:
        raise ApiError(403, "You must authenticate via a GitHub App.")
    if human != "read" and not rules.allows(level, human):
        raise ApiError(403, "Must have admin rights to Repository.")


def _check_token(hub: Hub, repository: Repository, actor: Actor, needs: str) -> None:
    token = actor.token
    if token is None:
        raise bad_credentials()
    covered = hub.world.covers(token.installation, repository) and (
        token.repositories is None or repository.id in token.repositories
    )
    if not covered and repository.private:
        raise not_found()
    permissions = token.permissions if covered else {}
    reads_public = not repository.private and "=write" not in needs
    if not reads_public and not rules.granted(permissions, rules.parse_needs(needs)):
        raise forbidden(needs)


async def _body(request: Request) -> Mapping[str, Any]:
    raw = await request.body()
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw)
    except ValueError:
        raise ApiError(400, "Problems parsing JSON") from None
    if isinstance(value, dict):
        return value
    if isinstance(value, list):  # labels may be sent as a bare list
        return {"": value}
    raise ApiError(400, "Body should be a JSON object")


def invalid_request(detail: str) -> ApiError:
    """The answer to a body that does not fit the schema."""
    return ApiError(422, f"Invalid request.\n\n{detail}")


def _record(
    hub: Hub, endpoint: Endpoint, request: Request, actor: Actor, reply: Reply, seconds: float
) -> None:
    app = actor.app.slug if actor.app else None
    hub.world.calls.append(
        ApiCall(
            method=request.method,
            path=request.url.path,
            status=reply.status,
            actor=actor.name,
            app=app,
            creates_content=endpoint.creates,
            at=hub.world.now(),
            seconds=seconds,
        )
    )


def _response(hub: Hub, request: Request, actor: Actor, reply: Reply) -> Response:
    version = request.headers.get("x-github-api-version", VERSIONS[0])
    headers = {
        **hub.limits.headers(actor),
        "X-GitHub-Request-Id": secrets.token_hex(8).upper(),
        "X-GitHub-Api-Version-Selected": version,
        "X-GitHub-Media-Type": "github.v3; format=json",
        "Vary": "Accept, Authorization, Cookie, X-GitHub-OTP",
        **reply.headers,
    }
    if reply.text is not None:
        return Response(reply.text, reply.status, headers, "text/plain; charset=utf-8")
    if reply.body is None:
        return Response(b"", reply.status, headers)
    content = json.dumps(_versioned(reply.body, version)).encode()
    if request.method == "GET" and reply.status == 200:
        headers["ETag"] = f'W/"{hashlib.sha256(content).hexdigest()}"'
        headers["Cache-Control"] = "private, max-age=60, s-maxage=60"
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(b"", 304, headers)
    return Response(content, reply.status, headers, "application/json; charset=utf-8")


def _versioned(value: Any, version: str) -> Any:
    """Without the members that API version 2026-03-10 dropped."""
    if version == VERSIONS[0]:
        return value
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in _DROPPED_SINCE_2026}
        return {key: _versioned(inner, version) for key, inner in kept.items()}
    if isinstance(value, list):
        return [_versioned(inner, version) for inner in value]
    return value


def _integer(text: str, default: int) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else default


def _raise(error: ApiError) -> Any:
    raise error
