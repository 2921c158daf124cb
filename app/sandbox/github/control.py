"""`/_sandbox`: the acts of people over HTTP, for processes that do not hold the double."""

from __future__ import annotations

import dataclasses
import hmac
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.sandbox.github.errors import ApiError
from app.sandbox.github.people import People
from app.sandbox.github.render import Json
from app.sandbox.github.snapshot import check_view, view
from app.sandbox.github.state import (
    Account,
    CheckRun,
    Installation,
    IssueComment,
    PullRequest,
    Repository,
    Review,
    ReviewComment,
    Thread,
)

TOKEN_HEADER = "X-Sandbox-Token"  # noqa: S105 - the name of a header
ACTS = (
    "permit",
    "create_repository",
    "fork",
    "install",
    "push",
    "delete_branch",
    "open_pull_request",
    "merge",
    "close",
    "reopen",
    "set_draft",
    "edit",
    "label",
    "comment",
    "reply",
    "review",
    "resolve_thread",
    "click",
    "require_check",
)


Handler = Callable[[Request], Awaitable[Response]]


def routes(people: People, drain: Callable[[], Awaitable[None]]) -> list[Route]:
    """`POST /_sandbox/{act}` takes the act's arguments as a JSON object."""

    async def act(request: Request) -> Response:
        name = request.path_params["act"]
        if name not in ACTS:
            return _error(404, f"no act {name!r}; known: {', '.join(ACTS)}")
        return await _perform(people, getattr(people, name), await request.body())

    async def pull(request: Request) -> Response:
        params = request.path_params
        name = f"{params['owner']}/{params['repo']}"
        try:
            found = people.pull_request(name, params["number"])
        except KeyError:
            return _error(404, f"no pull request {name}#{params['number']}")
        return JSONResponse(_shown(people, found))

    async def wait(_: Request) -> Response:
        await drain()
        return JSONResponse({"deliveries": len(people.hub.hooks.deliveries)})

    async def calls(_: Request) -> Response:
        log = [dataclasses.asdict(call) for call in people.hub.world.calls]
        return JSONResponse([{**call, "at": call["at"].isoformat()} for call in log])

    return [
        Route("/_sandbox/drain", _guarded(people, wait), methods=["POST"]),
        Route("/_sandbox/calls", _guarded(people, calls), methods=["GET"]),
        Route("/_sandbox/pulls/{owner}/{repo}/{number:int}", _guarded(people, pull)),
        Route("/_sandbox/{act}", _guarded(people, act), methods=["POST"]),
    ]


def _guarded(people: People, handler: Handler) -> Handler:
    """The handler behind the control token."""

    async def answer(request: Request) -> Response:
        given = request.headers.get(TOKEN_HEADER, "").encode()
        if not hmac.compare_digest(given, people.hub.control_token.encode()):
            return _error(401, f"send the control token in the header {TOKEN_HEADER}")
        return await handler(request)

    return answer


def _error(status: int, message: str) -> Response:
    return JSONResponse({"message": message}, status)


async def _perform(people: People, method: Callable[..., Any], raw: bytes) -> Response:
    try:
        arguments = json.loads(raw or b"{}")
        bound = inspect.signature(method).bind(**arguments)
    except (ValueError, TypeError) as error:
        return _error(400, f"wrong arguments: {error}")
    try:
        result = method(*bound.args, **bound.kwargs)
        if inspect.isawaitable(result):
            result = await result
    except KeyError as error:
        return _error(404, f"unknown: {error}")
    except ValueError as error:
        return _error(409, str(error))
    except ApiError as error:
        return JSONResponse(error.body(), error.status)
    return JSONResponse(_shown(people, result))


def _shown(people: People, result: object) -> Json:
    match result:
        case PullRequest():
            url = people.hub.render.html_url(result)
            return dataclasses.asdict(view(result, url))
        case Repository():
            return {"id": result.id, "full_name": result.full_name}
        case CheckRun():
            return dataclasses.asdict(check_view(result))
        case Account():
            return {"id": result.id, "login": result.login, "token": result.token}
        case Installation() | IssueComment() | Review() | ReviewComment():
            return {"id": result.id}
        case Thread():
            return {"id": result.id, "node_id": result.node_id}
        case _:
            return {"result": result}
