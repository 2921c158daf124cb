"""The scripted model on a free loopback port, inside the calling process and its event loop."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn

from app.sandbox.model.scenario import Scenario, load_scenario
from app.sandbox.model.service import ModelService, RecordedCall

_POLL = 0.005


class _Embedded(uvicorn.Server):
    """uvicorn without its signal handlers: the process belongs to the caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _meant(record: logging.LogRecord) -> bool:
    """Keeps what uvicorn says of an answer that is cut on purpose out of the log."""
    return "without completing response" not in record.getMessage()


class ModelServer:
    """`async with ModelServer("demo", api_key=key) as model:` serves at `model.url` until the end.

    `scenario` is a `Scenario`, a path, or the name of a shipped one. Clients must send `api_key`
    as `x-api-key`, or as a bearer where they speak OpenAI's format (at `model.url` + `/v1`); it is
    kept nowhere else. Prompts are cached by the time that `monotonic` tells. Raises `ScenarioError`
    for a scenario that cannot be used, and `ValueError` for an empty key. One instance serves once.
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        *,
        api_key: str,
        port: int = 0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        chosen = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        self._service = ModelService(chosen, api_key, monotonic)
        self._port = port
        self._socket: socket.socket | None = None
        self._server: _Embedded | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The base URL for a client of the Messages API, without a slash at its end."""
        if self._socket is None:
            raise RuntimeError("the model server is not running; enter it with `async with`")
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def calls(self) -> tuple[RecordedCall, ...]:
        """Every request to a model so far, in the order they were answered."""
        return tuple(self._service.calls)

    async def __aenter__(self) -> Self:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", self._port))
        config = uvicorn.Config(
            self._service.asgi(),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._server = _Embedded(config)
        logging.getLogger("uvicorn.error").addFilter(_meant)
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._serving.done():
                await self._serving
                raise RuntimeError("the model server ended while starting")
            await asyncio.sleep(_POLL)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        assert self._serving is not None
        assert self._socket is not None
        self._server.should_exit = True
        await self._serving
        logging.getLogger("uvicorn.error").removeFilter(_meant)
        self._socket.close()
        self._socket = None
