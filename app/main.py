"""The web process: webhooks in, health out. No stories here; they are injected with the worker.

Plain Starlette, because a started process must answer at once: FastAPI alone takes a sixth of the
loading time. What people and programs ask for beyond this may bring it, loaded later.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.clock import Clock, SystemClock
from app.jobs.dispatch import Dispatcher
from app.logs import get_logger, keep_secrets_of
from app.settings import Settings
from app.store.migrate import HEAD, behind, current_revision
from app.store.session import Store, open_store
from app.webhooks.intake import TransactionalIntake
from app.webhooks.router import EdgeOptions, build_router

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Services:
    """What the process has opened; handed to whoever runs beside the web server."""

    settings: Settings
    store: Store
    dispatcher: Dispatcher
    clock: Clock


LifespanHook = Callable[[Services], AbstractAsyncContextManager[None]]
"""Runs for as long as the web server does, for example the embedded worker."""


def create_app(
    settings: Settings,
    dispatcher: Dispatcher,
    *,
    store: Store | None = None,
    clock: Clock | None = None,
    lifespan_hook: LifespanHook | None = None,
) -> Starlette:
    """The ASGI application. Raises ConfigurationError if webhooks could not be authenticated.

    A store that is passed in is the caller's to close. The tables must exist
    (`app.store.migrate.upgrade`); until they do, `/readyz` answers 503.
    """
    keep_secrets_of(settings)
    options = EdgeOptions.from_settings(settings)
    services = Services(
        settings=settings,
        store=store or open_store(settings.async_database_url),
        dispatcher=dispatcher,
        clock=clock or SystemClock(),
    )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        try:
            async with lifespan_hook(services) if lifespan_hook else nullcontext():
                yield
        finally:
            if store is None:
                await services.store.close()

    router = build_router(
        options,
        intake=TransactionalIntake(services.store),
        dispatcher=dispatcher,
        clock=services.clock,
    )
    app = Starlette(
        routes=[*router.routes, *_health(services.store)],
        lifespan=lifespan,
    )
    app.state.services = services
    return app


def _health(store: Store) -> tuple[Route, ...]:
    async def healthz(_request: Request) -> Response:
        """The process answers."""
        return JSONResponse({"status": "ok"})

    async def readyz(_request: Request) -> Response:
        """The process can do its work: the database answers and has the tables we expect."""
        try:
            revision = await current_revision(store)
        except (SQLAlchemyError, OSError):
            log.exception("not ready: the database does not answer")
            return _not_ready("The database does not answer.")
        if revision != HEAD:
            return _not_ready(behind(revision))
        return JSONResponse({"status": "ready"})

    return Route("/healthz", healthz, methods=["GET"]), Route("/readyz", readyz, methods=["GET"])


def _not_ready(reason: str) -> JSONResponse:
    return JSONResponse({"status": "not ready", "reason": reason}, status_code=503)
