"""The HTTP face of the scripted model: bytes in, the provider's answers out."""

from __future__ import annotations

import hmac
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from uuid import uuid4

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.sandbox.model.agents import next_turn
from app.sandbox.model.conversation import conversation_of
from app.sandbox.model.errors import ErrorType, WireError, invalid
from app.sandbox.model.faults import FaultBook, block_size, spoil, within_allowance
from app.sandbox.model.parse import parse_request
from app.sandbox.model.scenario import Counting, Scenario
from app.sandbox.model.sse import events
from app.sandbox.model.wire import (
    Json,
    Reply,
    Request,
    ToolUse,
    Usage,
    error_body,
    message_body,
)

MAX_BODY = 32 * 1024 * 1024
"""Bytes of a request at most, as the provider documents it."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One request to the Messages API, without its words and without its key.

    `agent` and `model` are None when the request could not be read so far. `tools` are the tools
    the model asked for, in order; `stop_reason` and tokens are those answered (0 for an error);
    `error` is the type of the error answered.
    """

    number: int
    agent: str | None
    model: str | None
    stream: bool
    status: int
    input_tokens: int = 0
    output_tokens: int = 0
    tools: tuple[str, ...] = ()
    stop_reason: str | None = None
    error: str | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that is ready to be sent."""

    request: Request
    agent: str | None
    reply: Reply
    usage: Usage


class ModelService:
    """A scenario behind the Messages API. `calls` grows by one with each `POST /v1/messages`."""

    def __init__(self, scenario: Scenario, api_key: str) -> None:
        if not api_key:
            raise ValueError("the model server needs an api_key that clients must send")
        self._scenario = scenario
        self._api_key = api_key
        self._faults = FaultBook(scenario.faults)
        self.calls: list[RecordedCall] = []

    def asgi(self) -> Starlette:
        """The ASGI application."""
        return Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
                Route("/v1/models/{model_id}", self._model, methods=["GET"]),
            ],
            exception_handlers={WireError: _on_wire_error, HTTPException: _on_http_error},
        )

    async def _messages(self, http: HttpRequest) -> Response:
        request_id = _new_request_id()
        draft = RecordedCall(
            number=0, agent=None, model=None, stream=False, status=0, request_id=request_id
        )
        try:
            self._check_headers(http)
            request = parse_request(
                await _body(http), alternating=self._scenario.roles == "alternating"
            )
            agent = conversation_of(request).agent
            draft = replace(draft, agent=agent, model=request.model, stream=request.stream)
            answer = self._answer(request)
        except WireError as error:
            self._record(replace(draft, status=error.status, error=error.kind.value))
            return _error_response(error, request_id)
        self._record(_answered(draft, answer))
        return _response(answer, request_id)

    def _record(self, call: RecordedCall) -> None:
        self.calls.append(replace(call, number=len(self.calls) + 1))

    def _answer(self, request: Request) -> Answer:
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
            usage=_usage(request, reply, counting),
        )

    def _check_headers(self, http: HttpRequest) -> None:
        sent = _key_sent(http)
        if sent is None:
            raise WireError(ErrorType.AUTHENTICATION, "x-api-key header is required")
        if not hmac.compare_digest(sent.encode(), self._api_key.encode()):
            raise WireError(ErrorType.AUTHENTICATION, "invalid x-api-key")
        if "anthropic-version" not in http.headers:
            raise invalid("anthropic-version: header is required")

    async def _models(self, http: HttpRequest) -> Response:
        self._check_headers(http)
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
        self._check_headers(http)
        name = http.path_params["model_id"]
        if name not in self._scenario.models:
            raise WireError(ErrorType.NOT_FOUND, f"model: {name}")
        return JSONResponse(_model_body(name), headers={"request-id": _new_request_id()})


def _key_sent(http: HttpRequest) -> str | None:
    """The key, from the documented header or, as the provider's SDK 2 sends it, as a bearer."""
    scheme, _, token = http.headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.casefold() == "bearer" else None
    return http.headers.get("x-api-key", bearer)


def _answered(draft: RecordedCall, answer: Answer) -> RecordedCall:
    return replace(
        draft,
        status=200,
        input_tokens=answer.usage.input_tokens,
        output_tokens=answer.usage.output_tokens,
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


def _usage(request: Request, reply: Reply, counting: Counting) -> Usage:
    written = sum(block_size(block) for block in reply.blocks)
    return Usage(
        input_tokens=max(1, math.ceil(request.size / counting.input_chars_per_token)),
        output_tokens=max(1, math.ceil(written / counting.output_chars_per_token)),
    )


def _response(answer: Answer, request_id: str) -> Response:
    headers = {"request-id": request_id}
    if not answer.request.stream:
        body = message_body(answer.request, answer.reply, answer.usage)
        return JSONResponse(body, headers=headers)
    return StreamingResponse(
        _stream(answer),
        media_type="text/event-stream",
        headers=headers | {"cache-control": "no-cache"},
    )


async def _stream(answer: Answer) -> AsyncIterator[bytes]:
    for event in events(answer.request, answer.reply, answer.usage):
        yield event


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


def _error_response(error: WireError, request_id: str) -> Response:
    headers = {"request-id": request_id}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:g}"
    return JSONResponse(error_body(error, request_id), status_code=error.status, headers=headers)


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
