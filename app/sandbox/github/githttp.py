"""Git over HTTP: the real `git http-backend` behind GitHub's permissions."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from app.sandbox.github import pushes
from app.sandbox.github.endpoint import check_access
from app.sandbox.github.errors import ApiError
from app.sandbox.github.gitstore import NOBODY
from app.sandbox.github.hub import Hub
from app.sandbox.github.identity import Actor
from app.sandbox.github.rules import allows
from app.sandbox.github.state import ApiCall, Repository

_SERVICES = ("git-upload-pack", "git-receive-pack")
_CHUNK = 65_536

# git runs this once per pushed ref: name, old, new. Apps without `workflows: write` may not
# touch workflow files; the words are GitHub's.
UPDATE_HOOK = """#!/bin/sh
[ "$SANDBOX_WORKFLOWS" = deny ] || exit 0
[ "$3" = 0000000000000000000000000000000000000000 ] && exit 0
touched=$(git log --format= --name-only "$3" --not --all -- .github/workflows | head -n 1)
[ -z "$touched" ] && exit 0
echo "refusing to allow a GitHub App to create or update workflow \\`$touched\\` without" \
     "\\`workflows\\` permission" >&2
exit 1
"""


def routes(hub: Hub) -> list[Route]:
    """The smart HTTP routes of every repository, with and without `.git`."""

    async def serve(request: Request) -> Response:
        started = time.perf_counter()
        service = _service(request)
        actor = Actor(None)
        try:
            actor = hub.identity.actor(request.headers.get("authorization"))
            repository = _repository(hub, request, actor, service)
            response = await _serve(hub, request, actor, repository, service)
        except ApiError as error:
            response = _refusal(error, actor)
        _record(hub, request, actor, response.status_code, time.perf_counter() - started)
        return response

    base = "/{owner}/{repo}"
    return [
        Route(f"{base}/info/refs", serve, methods=["GET"]),
        Route(f"{base}/git-upload-pack", serve, methods=["POST"]),
        Route(f"{base}/git-receive-pack", serve, methods=["POST"]),
    ]


def _service(request: Request) -> str:
    last = request.url.path.rpartition("/")[2]
    return request.query_params.get("service", "") if last == "refs" else last


def _repository(hub: Hub, request: Request, actor: Actor, service: str) -> Repository:
    if service not in _SERVICES:
        raise ApiError(403, "Please upgrade your git client.")
    name = request.path_params["repo"].removesuffix(".git")
    repository = hub.world.repository(f"{request.path_params['owner']}/{name}")
    pushing = service == "git-receive-pack"
    if actor.account is None and (repository is None or repository.private or pushing):
        raise ApiError(401, "Repository not found.")
    if repository is None:
        raise ApiError(404, "Repository not found.")
    needs = "contents=write" if pushing else "contents=read"
    try:
        check_access(hub, repository, actor, needs, "write" if pushing else "read")
    except ApiError as error:
        if error.status == 404:
            raise ApiError(404, "Repository not found.") from None
        login = actor.account.login if actor.account else "nobody"
        refusal = f"Permission to {repository.full_name}.git denied to {login}."
        raise ApiError(403, refusal) from None
    return repository


def _refusal(error: ApiError, actor: Actor) -> Response:
    headers = {}
    if error.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="GitHub"'
    text = error.message
    if error.status == 401 and actor.account is None:
        text = "Invalid username or token."
    return PlainTextResponse(text, error.status, headers)


async def _serve(
    hub: Hub, request: Request, actor: Actor, repository: Repository, service: str
) -> Response:
    environment = _environment(hub, request, actor, repository)
    pushing = service == "git-receive-pack" and request.method == "POST"
    if not pushing:
        return await _backend(environment, await request.body())
    async with repository.lock:
        before = await hub.git.refs(repository.path)
        response = await _collected(await _backend(environment, await request.body()))
        after = await hub.git.refs(repository.path)
        if actor.account is not None:
            for ref in sorted(before.keys() | after.keys()):
                old, new = before.get(ref, NOBODY), after.get(ref, NOBODY)
                if old != new:
                    await pushes.branch_moved(hub, repository, ref, old, new, actor.account)
    return response


def _environment(
    hub: Hub, request: Request, actor: Actor, repository: Repository
) -> dict[str, str]:
    last = "info/refs" if request.url.path.endswith("/info/refs") else _service(request)
    environment = {
        **hub.git.environment,
        "GIT_PROJECT_ROOT": str(repository.path),
        "PATH_INFO": f"/{last}",
        "GIT_HTTP_EXPORT_ALL": "1",
        "REMOTE_USER": actor.account.login if actor.account else "",
        "REMOTE_ADDR": "127.0.0.1",
        "REQUEST_METHOD": request.method,
        "QUERY_STRING": request.url.query,
        "CONTENT_TYPE": request.headers.get("content-type", ""),
        "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
        "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
    }
    if actor.token is not None:
        level = actor.token.permissions.get("workflows", "none")
        environment["SANDBOX_WORKFLOWS"] = "allow" if allows(level, "write") else "deny"
    return environment


async def _backend(environment: dict[str, str], body: bytes) -> Response:
    """Run the CGI; its output is streamed."""
    environment["CONTENT_LENGTH"] = str(len(body))
    process = await asyncio.create_subprocess_exec(
        "git",
        "http-backend",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
    )
    feeder = asyncio.create_task(_feed(process, body))
    if process.stdout is None:  # pragma: no cover - asked for a pipe above
        raise ApiError(500, "git http-backend has no output")
    status, headers = 200, {}
    while line := (await process.stdout.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower() == "status":
            status = int(value.split()[0])
        else:
            headers[name] = value.strip()
    return StreamingResponse(_stream(process, feeder), status, headers)


async def _feed(process: asyncio.subprocess.Process, body: bytes) -> None:
    if process.stdin is None:  # pragma: no cover - asked for a pipe
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(body)
        await process.stdin.drain()
    process.stdin.close()


async def _stream(
    process: asyncio.subprocess.Process, feeder: asyncio.Task[None]
) -> AsyncIterator[bytes]:
    ended = False
    try:
        while process.stdout and (chunk := await process.stdout.read(_CHUNK)):
            yield chunk
        ended = True
    finally:
        if not ended:  # the client went away
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        await process.wait()
        await feeder


async def _collected(response: Response) -> Response:
    """The whole answer in memory, so that git is done before its effects are looked at."""
    if not isinstance(response, StreamingResponse):
        return response
    parts = [bytes(part) async for part in response.body_iterator if isinstance(part, bytes)]
    return Response(b"".join(parts), response.status_code, dict(response.headers))


def _record(hub: Hub, request: Request, actor: Actor, status: int, seconds: float) -> None:
    app = actor.app.slug if actor.app else None
    hub.world.calls.append(
        ApiCall(
            method="GIT",
            path=request.url.path,
            status=status,
            actor=actor.name,
            app=app,
            creates_content=False,
            at=hub.world.now(),
            seconds=seconds,
        )
    )
