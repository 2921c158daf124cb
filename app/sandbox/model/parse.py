"""A request body into a `Request`, or the 400 that the provider would answer."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

from app.sandbox.model.caching import Segment
from app.sandbox.model.errors import invalid
from app.sandbox.model.wire import (
    Block,
    Json,
    Message,
    Request,
    Role,
    Text,
    ToolResult,
    ToolUse,
    compact,
)

MAX_CACHE_POINTS = 4
"""Explicit cache breakpoints a request may hold, as the provider documents it."""

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_WITHOUT_TEXT = frozenset(
    {"image", "document", "thinking", "redacted_thinking", "search_result", "server_tool_use"}
)


def parse_request(raw: bytes, *, alternating: bool = False) -> Request:
    """Understand one request body. Raises `WireError` (400) that names the place and the fault.

    Messages of one role in a row count as one turn; with `alternating` they are refused.
    Fields that this server has no use for (temperature, metadata, beta fields) are not checked.
    """
    body = _json_object(raw)
    model = _required(body, "model", str)
    max_tokens = _required(body, "max_tokens", int)
    if max_tokens < 1:
        raise invalid("max_tokens: Input should be greater than or equal to 1")
    _check_cache_points(body)
    messages = _messages(_required(body, "messages", list))
    _check_order(messages, alternating=alternating)
    messages = _combined(messages)
    _check_tool_pairs(messages)
    spoken = compact({key: body.get(key) for key in ("system", "tools", "messages")})
    return Request(
        model=model,
        max_tokens=max_tokens,
        system=_text_of(body.get("system", ""), "system"),
        messages=messages,
        tools=_tools(body),
        stream=_stream(body),
        size=len(spoken),
        digest=hashlib.sha256(spoken.encode("utf-8", "surrogatepass")).hexdigest(),
        segments=tuple(_segments(body)),
    )


_LIVES = {"1h": 3_600.0}
_LIFE_S = 300.0


def _segments(body: Json) -> Iterator[Segment]:
    """Tools, system, messages: the order in which the provider's cache reads a prompt."""
    for tool in body.get("tools") or []:
        yield _segment(tool)
    system = body.get("system", "")
    for block in [system] if isinstance(system, str) else system:
        yield _segment(block)
    for message in body["messages"]:
        content = message["content"]
        for block in [content] if isinstance(content, str) else content:
            yield _segment(block, message["role"])


def _segment(block: Any, role: str = "") -> Segment:
    if not isinstance(block, dict):
        return Segment(f"{role}{compact(block)}")
    point = block.get("cache_control") or {}
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    ttl = _LIVES.get(str(point.get("ttl")), _LIFE_S) if point else None
    return Segment(f"{role}{compact(bare)}", ttl)


def _json_object(raw: bytes) -> Json:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise invalid("The request body is not valid JSON.") from error
    if not isinstance(body, dict):
        raise invalid("Input should be a valid dictionary")
    return body


def _required(body: Json, key: str, kind: type[Any]) -> Any:
    if key not in body:
        raise invalid(f"{key}: Field required")
    value = body[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise invalid(f"{key}: Input should be a valid {_type_name(kind)}")
    return value


def _type_name(kind: type[Any]) -> str:
    return {str: "string", int: "integer", list: "list", dict: "dictionary"}[kind]


def _stream(body: Json) -> bool:
    stream = body.get("stream", False)
    if not isinstance(stream, bool):
        raise invalid("stream: Input should be a valid boolean")
    return stream


def _text_of(content: object, where: str) -> str:
    """Text of a string or of a list of text blocks; other known blocks carry no text here."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(f"{where}: Input should be a valid string or list of blocks")
    parts = [_text_block(block, f"{where}.{index}") for index, block in enumerate(content)]
    return "\n".join(part for part in parts if part is not None)


def _text_block(block: object, where: str) -> str | None:
    kind = _block_type(block, where)
    if kind in _WITHOUT_TEXT:
        return None
    assert isinstance(block, dict)
    if kind != "text":
        raise _unexpected_tag(where, kind)
    text = block.get("text")
    if not isinstance(text, str):
        raise invalid(f"{where}.text: Field required")
    return text


def _block_type(block: object, where: str) -> str:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise invalid(f"{where}.type: Field required")
    return str(block["type"])


def _unexpected_tag(where: str, kind: str) -> Exception:
    return invalid(
        f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
    )


def _messages(items: Sequence[object]) -> tuple[Message, ...]:
    if not items:
        raise invalid("messages: at least one message is required")
    return tuple(_message(item, f"messages.{index}") for index, item in enumerate(items))


def _message(item: object, where: str) -> Message:
    if not isinstance(item, dict):
        raise invalid(f"{where}: Input should be a valid dictionary")
    if item.get("role") not in tuple(Role):
        raise invalid(f"{where}.role: Input should be 'user' or 'assistant'")
    role = Role(item["role"])
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise invalid(f"{where}.content: Field required")
    if not content and role is not Role.SYSTEM:
        raise invalid(f"{where}: all messages must have non-empty content")
    blocks = (_block(part, role, f"{where}.content.{n}") for n, part in enumerate(content))
    return Message(role, tuple(block for block in blocks if block is not None))


def _block(block: object, role: Role, where: str) -> Block | None:
    kind = _block_type(block, where)
    assert isinstance(block, dict)
    if kind == "tool_use" and role is Role.ASSISTANT:
        return _tool_use(block, where)
    if kind == "tool_result" and role is Role.USER:
        return _tool_result(block, where)
    if kind in {"tool_use", "tool_result"}:
        raise invalid(f"{where}: `{kind}` blocks cannot be in `{role.value}` messages")
    text = _text_block(block, where)
    if text is None:
        return None
    if not text:
        raise invalid("messages: text content blocks must be non-empty")
    return Text(text)


def _tool_use(block: Json, where: str) -> ToolUse:
    for key, kind in (("id", str), ("name", str), ("input", dict)):
        if not isinstance(block.get(key), kind):
            raise invalid(f"{where}.tool_use.{key}: Input should be a valid {_type_name(kind)}")
    return ToolUse(name=block["name"], input=block["input"], id=block["id"])


def _tool_result(block: Json, where: str) -> ToolResult:
    if not isinstance(block.get("tool_use_id"), str):
        raise invalid(f"{where}.tool_result.tool_use_id: Field required")
    return ToolResult(
        tool_use_id=block["tool_use_id"],
        text=_text_of(block.get("content", ""), f"{where}.tool_result.content"),
        is_error=bool(block.get("is_error", False)),
    )


def _check_order(messages: Sequence[Message], *, alternating: bool) -> None:
    turns = [message.role for message in messages if message.role is not Role.SYSTEM]
    if messages[0].role is not Role.USER:
        raise invalid('messages: first message must use the "user" role')
    doubled = [later for earlier, later in pairwise(turns) if earlier is later]
    if doubled and alternating:
        raise invalid(
            'messages: roles must alternate between "user" and "assistant", '
            f'but found multiple "{doubled[0].value}" roles in a row'
        )
    if turns[-1] is not Role.USER:
        raise invalid("messages: the conversation must end with a user message")


def _combined(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages of one role in a row as one turn, as the provider takes them."""
    return tuple(
        Message(role, tuple(block for message in group for block in message.blocks))
        for role, group in groupby(messages, key=lambda message: message.role)
    )


def _check_tool_pairs(messages: Sequence[Message]) -> None:
    """Every use is answered in the very next turn, and nothing else is answered."""
    asked: set[str] = set()
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if message.role is Role.SYSTEM:
            continue
        answered = [block.tool_use_id for block in message.blocks if isinstance(block, ToolResult)]
        _check_results(answered, asked, index)
        uses = [block.id for block in message.blocks if isinstance(block, ToolUse)]
        if len(set(uses)) < len(uses) or seen & set(uses):
            raise invalid(f"messages.{index}: `tool_use` ids must be unique")
        seen |= set(uses)
        asked = set(uses)


def _check_results(answered: Sequence[str], asked: set[str], index: int) -> None:
    for tool_use_id in answered:
        if tool_use_id not in asked:
            raise invalid(
                f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{tool_use_id}. Each `tool_result` block must have a corresponding `tool_use` "
                "block in the previous message."
            )
    if len(set(answered)) < len(answered):
        raise invalid(f"messages.{index}: each `tool_use` must have a single result")
    missing = sorted(asked - set(answered))
    if missing:
        raise invalid(
            f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
            "corresponding `tool_result` block in the next message."
        )


def _tools(body: Json) -> tuple[str, ...]:
    """Names the model may call in this turn: none when `tool_choice` forbids it."""
    items = body.get("tools") or []
    if not isinstance(items, list):
        raise invalid("tools: Input should be a valid list")
    names = [_tool_name(tool, f"tools.{index}") for index, tool in enumerate(items)]
    if len(set(names)) < len(names):
        raise invalid("tools: Tool names must be unique.")
    choice = body.get("tool_choice") or {}
    if isinstance(choice, dict) and choice.get("type") == "none":
        return ()
    return tuple(names)


def _tool_name(tool: object, where: str) -> str:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        raise invalid(f"{where}.name: Field required")
    if not _TOOL_NAME.fullmatch(tool["name"]):
        raise invalid(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    own = tool.get("type", "custom") == "custom"
    if own and not isinstance(tool.get("input_schema"), dict):
        raise invalid(f"{where}.custom.input_schema: Field required")
    return str(tool["name"])


def _check_cache_points(body: Json) -> None:
    places = (body.get("system"), body.get("tools"), body.get("messages"))
    found = sum(1 for place in places for _ in _cache_points(place))
    found += 1 if body.get("cache_control") else 0
    if found > MAX_CACHE_POINTS:
        raise invalid(
            f"A maximum of {MAX_CACHE_POINTS} blocks with cache_control may be provided. "
            f"Found {found}."
        )


def _cache_points(value: object) -> Iterator[None]:
    """One item per block that carries `cache_control`, in blocks and their nested content."""
    if not isinstance(value, list):
        return
    for block in value:
        if isinstance(block, dict):
            if block.get("cache_control"):
                yield None
            yield from _cache_points(block.get("content"))
