"""The GitHub double itself: one object that starts everything on a free loopback port."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import jwt
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount
from starlette.types import ExceptionHandler

from app.sandbox.github import (
    control,
    endpoint,
    githttp,
    graphql_api,
    pages,
    rest_apps,
    rest_checks,
    rest_issues,
    rest_pulls,
    rest_repos,
    rest_reviews,
    rules,
)
from app.sandbox.github.config import DoubleConfig
from app.sandbox.github.errors import ApiError, not_found
from app.sandbox.github.events import Events
from app.sandbox.github.gitstore import GitStore
from app.sandbox.github.hooks import Delivery, Hooks
from app.sandbox.github.hub import Hub
from app.sandbox.github.identity import Identity, loaded_key, register_app
from app.sandbox.github.limits import Faults, Limits
from app.sandbox.github.people import People
from app.sandbox.github.render import Renderer
from app.sandbox.github.snapshot import PullView, view
from app.sandbox.github.state import ApiCall, App
from app.sandbox.github.world import World

# `commits/{ref}/check-runs` must be asked before `commits/{ref}`, whose ref may hold slashes.
_MODULES = (rest_apps, rest_checks, rest_repos, rest_pulls, rest_reviews, rest_issues, graphql_api)

SHUTDOWN_SECONDS = 1.0


class _Server(uvicorn.Server):
    """A guest in somebody's loop: leaves signal handlers alone, and starts and stops without
    the ticks of a tenth of a second that uvicorn's own loop sleeps.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for sock in sockets or []:
            sock.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if self.server_state.tasks:  # requests being answered
            await asyncio.wait(self.server_state.tasks, timeout=SHUTDOWN_SECONDS)


class GitHubDouble(People):
    """A GitHub on loopback. `async with GitHubDouble(config) as gh: gh.url`.

    Acts of people are methods (see `People`). State lives in memory and in real git
    repositories, and dies with the context.
    """

    def __init__(self, config: DoubleConfig | None = None) -> None:
        self.config = config or DoubleConfig()
        self._temporary: Path | None = None

    async def __aenter__(self) -> Self:
        sock = _listening(self.config.host, self.config.port)
        port = sock.getsockname()[1]
        self.hub = self._build(f"http://{self.config.host}:{port}")
        for app in self.config.apps:
            registered = register_app(self.hub.world, app)
            if registered.webhook_url is not None:
                self.hub.events.ping(registered)
        settings = uvicorn.Config(
            self.asgi(),
            lifespan="off",
            log_config=None,
            access_log=False,
            ws="none",
            http="h11",
            date_header=False,  # it would show the time of the start
        )
        self._server = _Server(settings)
        # The socket listens already: whoever connects before the server runs just waits.
        self._serving = asyncio.create_task(self._server.serve(sockets=[sock]))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.hub.hooks.close()
        self._server.stopping.set()
        await self._serving
        if self._temporary is not None:
            await asyncio.to_thread(shutil.rmtree, self._temporary, ignore_errors=True)

    def _build(self, url: str) -> Hub:
        directory = self.config.directory
        if directory is None:
            directory = self._temporary = Path(tempfile.mkdtemp(prefix="sandbox-github-"))
        world = World(self.config.clock)
        git, render, faults = GitStore(directory), Renderer(url, world), Faults()
        hooks = Hooks(world, self.config.webhook_timeout_seconds)
        return Hub(
            url=url,
            world=world,
            git=git,
            identity=Identity(world, self.config.token_lifetime_seconds),
            hooks=hooks,
            events=Events(world, hooks, render, git, faults),
            render=render,
            limits=Limits(world, self.config.rate_limit, self.config.content_per_minute),
            faults=faults,
            control_token=self.config.control_token or secrets.token_urlsafe(24),
        )

    def asgi(self) -> Starlette:
        """The ASGI application: control, API (bare and under `/api/v3`), git and pages."""
        hub = self.hub
        api = endpoint.routes(hub, [e for module in _MODULES for e in module.endpoints])
        routes = [
            *control.routes(self, self.drain),
            Mount("/api/v3", routes=api),
            *api,
            *githttp.routes(hub),
            *pages.routes(hub),
        ]
        return Starlette(routes=routes, exception_handlers=_HANDLERS)

    @property
    def url(self) -> str:
        """Base URL of REST, git and pages, without a slash at its end."""
        return self.hub.url

    @property
    def control_token(self) -> str:
        """What `/_sandbox` wants in the header `X-Sandbox-Token`."""
        return self.hub.control_token

    @property
    def faults(self) -> Faults:
        """Failures to inject into calls and deliveries."""
        return self.hub.faults

    @property
    def calls(self) -> list[ApiCall]:
        """Every API and git request answered so far."""
        return self.hub.world.calls

    @property
    def deliveries(self) -> list[Delivery]:
        """Every webhook delivery so far, oldest first."""
        return self.hub.hooks.deliveries

    async def drain(self) -> None:
        """Wait until all deliveries, and those they caused meanwhile, were answered."""
        await self.hub.hooks.drain()

    def pull(self, repository: str, number: int) -> PullView:
        """A frozen view of a pull request with reviews, threads, comments and checks."""
        found = self.pull_request(repository, number)
        return view(found, self.hub.render.html_url(found))

    def app(self, slug: str) -> App:
        """An App by slug; `private_key` is its PEM."""
        return next(app for app in self.hub.world.apps.values() if app.slug == slug)

    def set_webhook(self, slug: str, url: str | None, secret: str | None = None) -> None:
        """Point an App's webhook somewhere else and ping it."""
        app = self.app(slug)
        app.webhook_url = url
        if secret is not None:
            app.webhook_secret = secret
        if url is not None:
            self.hub.events.ping(app)

    def jwt(self, slug: str) -> str:
        """An App JWT valid for nine minutes, as the App itself would sign it."""
        app, now = self.app(slug), int(time.time())
        claims = {"iat": now - 60, "exp": now + 540, "iss": str(app.id)}
        return jwt.encode(claims, loaded_key(app.private_key), algorithm="RS256")

    def token(
        self, slug: str, repository: str, permissions: Mapping[str, str] | None = None
    ) -> str:
        """An installation token for one repository, minted without the API."""
        found = self.repository(repository)
        installations = self.hub.world.installations_on(found)
        installation = next(i for i in installations if i.app.slug == slug)
        granted = rules.narrowed(installation.permissions, permissions)
        if granted is None:
            raise ValueError(f"App {slug} has not all of {dict(permissions or {})}")
        return self.hub.identity.mint(installation, granted, frozenset({found.id})).value


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket that knows its protocol.

    asyncio switches Nagle's algorithm off only where `proto` says TCP; without it every answer
    on a kept connection waits 40 ms for an acknowledgement.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    sock.listen()
    return sock


async def _unknown(_request: Request, _error: Exception) -> Response:
    error = not_found()
    return JSONResponse(error.body(), error.status)


async def _crashed(_request: Request, _error: Exception) -> Response:
    """A bug of the double; the traceback goes to the log."""
    error = ApiError(500, "Server Error")
    return JSONResponse(error.body(), error.status)


_HANDLERS: Mapping[Any, ExceptionHandler] = {404: _unknown, 405: _unknown, 500: _crashed}
