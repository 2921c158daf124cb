"""`mergeward serve`: the web process, with a worker beside it unless told otherwise.

The order is chosen for a fast start: the port is taken first, so that callers wait instead of
being refused, and the worker loads its libraries once the server answers.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import uvicorn

from app.errors import ConfigurationError, MergewardError
from app.jobs.dispatch import InProcessDispatcher
from app.logs import configure_logging, get_logger
from app.main import LifespanHook, Services, create_app
from app.settings import Settings, load_settings
from app.store.migrate import is_current, upgrade
from app.store.session import Store, open_store

BACKLOG = 2048
MOST_CONNECTIONS = 1000
"""Above that, callers are told 503 at once; GitHub's deliveries are fetched again later."""
KEEP_ALIVE_S = 30
DRAIN_S = 10
"""How long requests that are being answered may go on when the process ends."""

log = get_logger(__name__)


def run(overrides: Mapping[str, Any], *, web_only: bool) -> None:
    """Serve until SIGTERM or Ctrl-C. `overrides` are settings by name.

    Raises MergewardError when it cannot start, or when the worker cannot go on.
    """
    settings = load_settings(**overrides)
    settings.require_web()
    if not web_only:
        settings.require_reviewer()
    configure_logging(log_format=settings.log_format, level=settings.log_level)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # the greeting says it better
    with listen(settings.host, settings.port) as listening:
        asyncio.run(_serve(settings, listening, web_only=web_only))


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections on this address. Raises ConfigurationError."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigurationError(_why_not(host, port, error)) from None


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is in use by another process: stop that one, or choose another "
            "by --port or MERGEWARD_PORT (0 takes a free one)."
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"Port {port} on {host} may not be used by this user: choose one above 1023."
    why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    return f"MERGEWARD_HOST: {host} is no address of this machine ({why})."


async def _serve(settings: Settings, listening: socket.socket, *, web_only: bool) -> None:
    store = open_store(settings.async_database_url)
    try:
        await _prepare(store, settings)
        wakeups = InProcessDispatcher()
        beside = None if web_only else _Beside(wakeups)
        hook: LifespanHook | None = beside.running if beside else None
        app = create_app(settings, wakeups, store=store, lifespan_hook=hook)
        server = _Server(_limits(app), _greeting(listening, web_only=web_only))
        if beside:
            beside.on_failure = server.stop
        await server.serve(sockets=[listening])
        if beside and beside.failure:
            raise beside.failure
    finally:
        await store.close()


async def _prepare(store: Store, settings: Settings) -> None:
    """The tables of an embedded database are brought up to date; a shared one is its operator's."""
    if await is_current(store):
        return
    if store.engine.dialect.name == "sqlite":
        await asyncio.to_thread(upgrade, settings.async_database_url)
    else:
        log.warning("the database is not at this version's revision: run `mergeward db upgrade`")


def _limits(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=DRAIN_S,
    )


def _greeting(listening: socket.socket, *, web_only: bool) -> str:
    host, port = listening.getsockname()[:2]
    place = f"[{host}]" if ":" in host else host
    what = "no worker" if web_only else "with a worker"
    return f"Mergeward listens on http://{place}:{port} ({what}); webhooks go to /webhooks/github."


class _Server(uvicorn.Server):
    """uvicorn that says when it listens, and ends with code 0 when it is asked to end."""

    def __init__(self, config: uvicorn.Config, greeting: str) -> None:
        super().__init__(config)
        self._greeting = greeting

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(self._greeting, flush=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        self.should_exit = True


class _Beside:
    """The worker in the web server's event loop. One that cannot go on ends the process."""

    def __init__(self, wakeups: InProcessDispatcher) -> None:
        self._wakeups = wakeups
        self.on_failure: Callable[[], None] = lambda: None
        self.failure: BaseException | None = None

    @asynccontextmanager
    async def running(self, services: Services) -> AsyncIterator[None]:
        from app.worker import work

        working = asyncio.create_task(work(services, self._wakeups), name="mergeward-worker")
        working.add_done_callback(self._ended)
        try:
            yield
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await working

    def _ended(self, working: asyncio.Task[None]) -> None:
        if not working.cancelled() and (error := working.exception()) is not None:
            self.failure = error
            if not isinstance(error, MergewardError):
                log.error("the worker ended", exc_info=error)
            self.on_failure()
