"""OpenAI's chat completions on the wire: bodies, the stream's chunks, and errors."""

from __future__ import annotations

from collections.abc import Iterator

from app.sandbox.model.errors import ErrorType, WireError
from app.sandbox.model.wire import (
    Json,
    Reply,
    Request,
    StopReason,
    Text,
    ToolUse,
    Usage,
    compact,
)

PIECE = 256
"""Characters of one delta."""

_FINISH = {
    StopReason.END_TURN: "stop",
    StopReason.TOOL_USE: "tool_calls",
    StopReason.MAX_TOKENS: "length",
}
_CODES: dict[ErrorType, tuple[str, str | None]] = {
    ErrorType.INVALID_REQUEST: ("invalid_request_error", None),
    ErrorType.CONTEXT: ("invalid_request_error", "context_length_exceeded"),
    ErrorType.AUTHENTICATION: ("invalid_request_error", "invalid_api_key"),
    ErrorType.NOT_FOUND: ("invalid_request_error", "model_not_found"),
    ErrorType.TOO_LARGE: ("invalid_request_error", None),
    ErrorType.RATE_LIMIT: ("requests", "rate_limit_exceeded"),
    ErrorType.API: ("server_error", None),
    ErrorType.UNAVAILABLE: ("server_error", None),
    ErrorType.OVERLOADED: ("server_error", "server_is_overloaded"),
}


def chat_body(request: Request, reply: Reply, usage: Usage) -> Json:
    """The whole completion, as a call without streaming returns it."""
    calls = [_call(block) for block in reply.blocks if isinstance(block, ToolUse)]
    text = "".join(block.text for block in reply.blocks if isinstance(block, Text))
    message: Json = {"role": "assistant", "content": text or None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _FINISH[reply.stop_reason],
    }
    return {
        **_head(request, "chat.completion"),
        "choices": [choice],
        "usage": chat_usage(usage),
        "service_tier": "default",
    }


def chat_events(request: Request, reply: Reply, usage: Usage) -> Iterator[bytes]:
    """The whole stream, chunk by chunk, to `[DONE]`."""
    head = _head(request, "chat.completion.chunk")
    yield _chunk(head, {"role": "assistant", "content": ""})
    index = 0
    for block in reply.blocks:
        if isinstance(block, Text):
            for piece in _pieces(block.text):
                yield _chunk(head, {"content": piece})
            continue
        opening = _call(block, arguments="") | {"index": index}
        yield _chunk(head, {"tool_calls": [opening]})
        for piece in _pieces(compact(dict(block.input))):
            delta = {"index": index, "function": {"arguments": piece}}
            yield _chunk(head, {"tool_calls": [delta]})
        index += 1
    yield _chunk(head, {}, _FINISH[reply.stop_reason])
    if request.wants_usage:
        yield _data({**head, "choices": [], "usage": chat_usage(usage)})
    yield DONE


DONE = b"data: [DONE]\n\n"


def is_finish(event: bytes) -> bool:
    """Whether the chunk says why the model stopped."""
    return b'"finish_reason":"' in event


def chat_usage(usage: Usage) -> Json:
    """The `usage` object: all input together, the cached part named besides."""
    total_in = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": total_in,
        "completion_tokens": usage.output_tokens,
        "total_tokens": total_in + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def chat_error(error: WireError, _request_id: str) -> Json:
    """The body of an error answer."""
    kind, code = _CODES[error.kind]
    return {"error": {"message": error.message, "type": kind, "param": None, "code": code}}


def chat_error_event(error: WireError) -> bytes:
    """An error in the midst of a stream."""
    return _data(chat_error(error, ""))


def _head(request: Request, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{request.digest[:24]}",
        "object": kind,
        "created": 0,
        "model": request.model,
        "system_fingerprint": None,
    }


def _call(block: ToolUse, arguments: str | None = None) -> Json:
    said = compact(dict(block.input)) if arguments is None else arguments
    return {
        "id": block.id,
        "type": "function",
        "function": {"name": block.name, "arguments": said},
    }


def _chunk(head: Json, delta: Json, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _data({**head, "choices": [choice]})


def _data(body: Json) -> bytes:
    return f"data: {compact(body)}\n\n".encode("utf-8", "replace")


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))
