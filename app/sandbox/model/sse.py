"""A reply as the server-sent events of the streaming Messages API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from app.sandbox.model.errors import WireError
from app.sandbox.model.wire import (
    Json,
    Reply,
    Request,
    Text,
    ToolUse,
    Usage,
    block_body,
    compact,
    message_body,
    usage_body,
)

PIECE = 256
"""Characters of one delta."""


def events(request: Request, reply: Reply, usage: Usage) -> Iterator[bytes]:
    """The whole stream, event by event, from `message_start` to `message_stop`."""
    start = message_body(request, reply, usage)
    start |= {"content": [], "stop_reason": None}
    start["usage"] = usage_body(replace(usage, output_tokens=1))
    yield _event({"type": "message_start", "message": start})
    yield _event({"type": "ping"})
    for index, block in enumerate(reply.blocks):
        yield from _block_events(index, block)
    yield _event(
        {
            "type": "message_delta",
            "delta": {
                "stop_reason": reply.stop_reason.value,
                "stop_sequence": None,
                "stop_details": None,
            },
            "usage": {"output_tokens": usage.output_tokens},
        }
    )
    yield _event({"type": "message_stop"})


def error_event(error: WireError) -> bytes:
    """An error in the midst of a stream, whose status was 200."""
    return _event({"type": "error", "error": {"type": error.told.value, "message": error.message}})


def is_finish(event: bytes) -> bool:
    """Whether the event says why the model stopped, or that this was all."""
    return event.startswith((b"event: message_delta", b"event: message_stop"))


def _block_events(index: int, block: Text | ToolUse) -> Iterator[bytes]:
    body = block_body(block)
    text = block.text if isinstance(block, Text) else compact(dict(block.input))
    empty: Json = {"text": ""} if isinstance(block, Text) else {"input": {}}
    yield _event({"type": "content_block_start", "index": index, "content_block": body | empty})
    for piece in _pieces(text):
        delta: Json = {"type": "text_delta", "text": piece}
        if isinstance(block, ToolUse):
            delta = {"type": "input_json_delta", "partial_json": piece}
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
    yield _event({"type": "content_block_stop", "index": index})


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _event(data: Json) -> bytes:
    return f"event: {data['type']}\ndata: {compact(data)}\n\n".encode("utf-8", "replace")
