"""The values of the Messages API: a request as understood, a reply, and their bodies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.sandbox.model.caching import Segment
from app.sandbox.model.errors import WireError

Json = dict[str, Any]


class Role(StrEnum):
    """Who speaks in a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Text:
    """A block of text, in either direction."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The model asks for a tool. `id` is empty in a reply that is not numbered yet."""

    name: str
    input: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the tool with that id answered, its text blocks joined by newlines."""

    tool_use_id: str
    text: str
    is_error: bool = False


Block = Text | ToolUse | ToolResult


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. Blocks whose content means nothing here (images, thinking) are left out."""

    role: Role
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One valid request. `tools` are the names the model may call now; `size` is in characters.
    `segments` are its blocks as the provider's cache sees them."""

    model: str
    max_tokens: int
    system: str
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    stream: bool
    size: int
    digest: str
    segments: tuple[Segment, ...] = ()
    wants_usage: bool = True


class StopReason(StrEnum):
    """Why the model ended its turn."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"


@dataclass(frozen=True, slots=True)
class Reply:
    """One turn of the model."""

    blocks: tuple[Text | ToolUse, ...]
    stop_reason: StopReason

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools asked for, in order."""
        return tuple(block.name for block in self.blocks if isinstance(block, ToolUse))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the scenario's `usage` counts them; `input_tokens` are those that were
    neither read from the cache nor written to it."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


def say(text: str) -> Reply:
    """A turn that ends with text."""
    return Reply((Text(text),), StopReason.END_TURN)


def call(*uses: ToolUse) -> Reply:
    """A turn that asks for tools, all at once."""
    return Reply(uses, StopReason.TOOL_USE)


def compact(value: object) -> str:
    """JSON without padding, with keys in the order given."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def usage_body(usage: Usage) -> Json:
    """The `usage` object of a message."""
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_tokens,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": usage.output_tokens,
        "service_tier": "standard",
    }


def block_body(block: Text | ToolUse) -> Json:
    """One content block of a message."""
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.input)}


def message_body(request: Request, reply: Reply, usage: Usage) -> Json:
    """The whole message, as a call without streaming returns it."""
    return {
        "id": f"msg_01{request.digest[:22]}",
        "type": "message",
        "role": Role.ASSISTANT.value,
        "model": request.model,
        "content": [block_body(block) for block in reply.blocks],
        "stop_reason": reply.stop_reason.value,
        "stop_sequence": None,
        "stop_details": None,
        "usage": usage_body(usage),
    }


def error_body(error: WireError, request_id: str) -> Json:
    """The body of an error answer."""
    return {
        "type": "error",
        "error": {"type": error.told.value, "message": error.message},
        "request_id": request_id,
    }
