"""The HTTP face of the scripted model: bytes in, the provider's answers out."""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import uuid4

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.sandbox.model.agents import next_turn
from app.sandbox.model.caching import Cached, PromptCache
from app.sandbox.model.conversation import conversation_of
from app.sandbox.model.dialects import CHAT, MESSAGES, Dialect, refused_key
from app.sandbox.model.errors import ErrorType, WireError
from app.sandbox.model.faults import FaultBook, block_size, spoil, within_allowance
from app.sandbox.model.scenario import Counting, FaultKind, Scenario
from app.sandbox.model.streaming import SpoiledStream
from app.sandbox.model.wire import (
    Json,
    Reply,
    Request,
    ToolUse,
    Usage,
    error_body,
)

MAX_BODY = 32 * 1024 * 1024
"""Bytes of a request at most, as the provider documents it."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One request to a model, without its words and without its key.

    `agent` and `model` are None when the request could not be read so far. `tools` are the tools
    the model asked for, in order; `stop_reason` and tokens are those answered (0 for an error);
    `error` is the type of the error answered. `input_tokens` are those that were neither read from
    the cache nor written to it.
    """

    number: int
    agent: str | None
    model: str | None
    stream: bool
    status: int
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    tools: tuple[str, ...] = ()
    stop_reason: str | None = None
    error: str | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that is ready to be sent. `spoiled` says what goes wrong on its way."""

    request: Request
    agent: str | None
    reply: Reply
    usage: Usage
    spoiled: FaultKind | None = None


class ModelService:
    """A scenario behind both wire formats. `calls` grows by one with each request to a model.

    `monotonic` is the time by which prompts are kept, in seconds.
    """

    def __init__(
        self,
        scenario: Scenario,
        api_key: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not api_key:
            raise ValueError("the model server needs an api_key that clients must send")
        self._scenario = scenario
        self._api_key = api_key
        self._faults = FaultBook(scenario.faults)
        self._cache = PromptCache(monotonic, scenario.usage.input_chars_per_token)
        self.calls: list[RecordedCall] = []

    def asgi(self) -> Starlette:
        """The ASGI application."""
        return Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
                Route("/v1/models/{model_id}", self._model, methods=["GET"]),
            ],
            exception_handlers={WireError: _on_wire_error, HTTPException: _on_http_error},
        )

    async def _messages(self, http: HttpRequest) -> Response:
        return await self._asked(http, MESSAGES)

    async def _chat(self, http: HttpRequest) -> Response:
        return await self._asked(http, CHAT)

    async def _asked(self, http: HttpRequest, dialect: Dialect) -> Response:
        request_id = _new_request_id()
        draft = RecordedCall(
            number=0, agent=None, model=None, stream=False, status=0, request_id=request_id
        )
        try:
            self._check_headers(http, dialect)
            request = dialect.parse(
                await _body(http), alternating=self._scenario.roles == "alternating"
            )
            agent = conversation_of(request).agent
            draft = replace(draft, agent=agent, model=request.model, stream=request.stream)
            answer = self._answer(request, dialect)
        except WireError as error:
            self._record(replace(draft, status=error.status, error=error.told.value))
            return _error_response(error, request_id, dialect)
        self._record(_answered(draft, answer))
        return _response(answer, request_id, dialect)

    def _record(self, call: RecordedCall) -> None:
        self.calls.append(replace(call, number=len(self.calls) + 1))

    def _answer(self, request: Request, dialect: Dialect) -> Answer:
        if request.model not in self._scenario.models:
            raise WireError(ErrorType.NOT_FOUND, f"model: {request.model}")
        conversation = conversation_of(request)
        fault = self._faults.next_fault(conversation, request.model)
        reply = next_turn(self._scenario, conversation)
        if fault is not None:
            reply = spoil(fault, reply)
        counting = self._scenario.usage
        reply = within_allowance(reply, int(request.max_tokens * counting.output_chars_per_token))
        return Answer(
            request=request,
            agent=conversation.agent,
            reply=_numbered(reply, request.digest),
            usage=_usage(
                request,
                reply,
                counting,
                dialect.cached(self._cache, request.model, request.segments),
            ),
            spoiled=fault.kind if fault is not None and fault.kind.spoils_stream else None,
        )

    def _check_headers(self, http: HttpRequest, dialect: Dialect) -> None:
        sent = dialect.key_sent(http)
        if sent is None or not hmac.compare_digest(sent.encode(), self._api_key.encode()):
            raise refused_key(dialect, sent)
        dialect.check(http)

    async def _models(self, http: HttpRequest) -> Response:
        self._check_headers(http, MESSAGES)
        models = [_model_body(name) for name in self._scenario.models]
        return JSONResponse(
            {
                "data": models,
                "has_more": False,
                "first_id": models[0]["id"],
                "last_id": models[-1]["id"],
            },
            headers={"request-id": _new_request_id()},
        )

    async def _model(self, http: HttpRequest) -> Response:
        self._check_headers(http, MESSAGES)
        name = http.path_params["model_id"]
        if name not in self._scenario.models:
            raise WireError(ErrorType.NOT_FOUND, f"model: {name}")
        return JSONResponse(_model_body(name), headers={"request-id": _new_request_id()})


def _answered(draft: RecordedCall, answer: Answer) -> RecordedCall:
    return replace(
        draft,
        status=200,
        input_tokens=answer.usage.input_tokens,
        output_tokens=answer.usage.output_tokens,
        cache_read_tokens=answer.usage.cache_read_tokens,
        cache_write_tokens=answer.usage.cache_write_tokens,
        tools=answer.reply.tools,
        stop_reason=answer.reply.stop_reason.value,
    )


async def _body(http: HttpRequest) -> bytes:
    parts = bytearray()
    async for part in http.stream():
        parts += part
        if len(parts) > MAX_BODY:
            raise WireError(ErrorType.TOO_LARGE, "Request exceeds the maximum size")
    return bytes(parts)


def _numbered(reply: Reply, digest: str) -> Reply:
    """The reply with an id on each tool call: the same for the same request, new for each turn."""
    blocks = tuple(
        replace(block, id=f"toolu_01{digest[:18]}{index:04d}")
        if isinstance(block, ToolUse)
        else block
        for index, block in enumerate(reply.blocks)
    )
    return Reply(blocks, reply.stop_reason)


def _usage(request: Request, reply: Reply, counting: Counting, cached: Cached) -> Usage:
    written = sum(block_size(block) for block in reply.blocks)
    sent = max(1, math.ceil(request.size / counting.input_chars_per_token))
    return Usage(
        input_tokens=max(0, sent - cached.read - cached.written),
        output_tokens=max(1, math.ceil(written / counting.output_chars_per_token)),
        cache_read_tokens=cached.read,
        cache_write_tokens=cached.written,
    )


def _response(answer: Answer, request_id: str, dialect: Dialect) -> Response:
    headers = {"request-id": request_id}
    if not answer.request.stream:
        body = dialect.body(answer.request, answer.reply, answer.usage)
        return JSONResponse(body, headers=headers)
    return SpoiledStream(
        dialect.events(answer.request, answer.reply, answer.usage),
        answer.spoiled,
        dialect,
        headers=headers | {"cache-control": "no-cache"},
    )


def _model_body(name: str) -> Json:
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
    }


def _new_request_id() -> str:
    return f"req_01{uuid4().hex[:22]}"


def _error_response(error: WireError, request_id: str, dialect: Dialect = MESSAGES) -> Response:
    headers = {"request-id": request_id}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:g}"
    body = dialect.error(error, request_id)
    return JSONResponse(body, status_code=error.status, headers=headers)


async def _on_wire_error(_: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, WireError)
    return _error_response(error, _new_request_id())


async def _on_http_error(http: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        message, kind = "Method Not Allowed", ErrorType.INVALID_REQUEST
    else:
        message, kind = f"Not found: {http.method} {http.url.path}", ErrorType.NOT_FOUND
    request_id = _new_request_id()
    body = error_body(WireError(kind, message), request_id)
    headers = {"request-id": request_id}
    return JSONResponse(body, status_code=error.status_code, headers=headers)
