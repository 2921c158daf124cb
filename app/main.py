"""The web process: webhooks in, health out. No stories here; they are injected with the worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError

from app.clock import Clock, SystemClock
from app.jobs.dispatch import Dispatcher
from app.logs import get_logger
from app.settings import Settings
from app.store.migrate import HEAD, current_revision
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
) -> FastAPI:
    """The ASGI application. Raises ConfigurationError if webhooks could not be authenticated.

    A store that is passed in is the caller's to close. The tables must exist
    (`app.store.migrate.upgrade`); until they do, `/readyz` answers 503.
    """
    options = EdgeOptions.from_settings(settings)
    services = Services(
        settings=settings,
        store=store or open_store(settings.async_database_url),
        dispatcher=dispatcher,
        clock=clock or SystemClock(),
    )

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        try:
            async with lifespan_hook(services) if lifespan_hook else nullcontext():
                yield
        finally:
            if store is None:
                await services.store.close()

    app = FastAPI(
        title="Mergeward", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.state.services = services
    app.include_router(
        build_router(
            options,
            intake=TransactionalIntake(services.store),
            dispatcher=dispatcher,
            clock=services.clock,
        )
    )
    _add_health(app, services.store)
    return app


def _add_health(app: FastAPI, store: Store) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz() -> Response:
        """The process can do its work: the database answers and has the tables we expect."""
        try:
            revision = await current_revision(store)
        except (SQLAlchemyError, OSError):
            log.exception("not ready: the database does not answer")
            return _not_ready("The database does not answer.")
        if revision != HEAD:
            return _not_ready(
                f"The database is at revision {revision or 'none'}, this version needs {HEAD}: "
                "run `mergeward db upgrade`."
            )
        return JSONResponse({"status": "ready"})


def _not_ready(reason: str) -> JSONResponse:
    return JSONResponse({"status": "not ready", "reason": reason}, status_code=503)
