"""What one request tells: who is asked, what was asked of it, and what its tools have shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.sandbox.model.wire import Request, Role, Text, ToolResult, ToolUse

_AGENT_LINE = re.compile(r"^# Mergeward agent: ([a-z_]+)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One tool call of this conversation with its answer."""

    name: str
    input: Mapping[str, Any]
    text: str
    is_error: bool

    @property
    def path(self) -> str:
        """The `path` it was called with, "" where there is none."""
        value = self.input.get("path", "")
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything a scripted agent may know. `turn` counts from 1: the turn now to be made."""

    agent: str | None
    tools: frozenset[str]
    user_text: str
    exchanges: tuple[Exchange, ...]
    turn: int

    def called(self, tool: str) -> tuple[Exchange, ...]:
        """The calls of that tool so far, in order."""
        return tuple(exchange for exchange in self.exchanges if exchange.name == tool)

    def paths_of(self, tool: str) -> frozenset[str]:
        """Paths that tool was called with so far."""
        return frozenset(exchange.path for exchange in self.called(tool))


def conversation_of(request: Request) -> Conversation:
    """Read a request. The agent is None when the system prompt has no agent line."""
    match = _AGENT_LINE.search(request.system)
    return Conversation(
        agent=match.group(1) if match else None,
        tools=frozenset(request.tools),
        user_text="\n".join(_user_texts(request)),
        exchanges=tuple(_exchanges(request)),
        turn=1 + sum(message.role is Role.ASSISTANT for message in request.messages),
    )


def _user_texts(request: Request) -> Iterator[str]:
    for message in request.messages:
        if message.role is Role.USER:
            yield from (block.text for block in message.blocks if isinstance(block, Text))


def _exchanges(request: Request) -> Iterator[Exchange]:
    blocks = [block for message in request.messages for block in message.blocks]
    results = {block.tool_use_id: block for block in blocks if isinstance(block, ToolResult)}
    for block in blocks:
        if isinstance(block, ToolUse) and block.id in results:
            result = results[block.id]
            yield Exchange(block.name, block.input, result.text, result.is_error)
