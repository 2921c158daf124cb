"""A body of OpenAI's chat completions into a `Request`, or the 400 that OpenAI would answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import groupby
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

_SYSTEM = ("system", "developer")
_MOST_OUTPUT = 128_000


def parse_chat(raw: bytes, *, alternating: bool = False) -> Request:
    """Understand one request body. Raises `WireError` (400) that names the place and the fault.

    `alternating` is for the other wire format; here a turn may be several messages.
    """
    del alternating
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise invalid("We could not parse the JSON body of your request.") from error
    if not isinstance(body, dict):
        raise invalid("We could not parse the JSON body of your request.")
    model, items = body.get("model"), body.get("messages")
    if not isinstance(model, str):
        raise invalid("you must provide a model parameter")
    if not isinstance(items, list) or not items:
        raise invalid("Missing required parameter: 'messages'.")
    messages = [_checked(item, f"messages[{n}]") for n, item in enumerate(items)]
    _check_answers(messages)
    tools = body.get("tools") or []
    return Request(
        model=model,
        max_tokens=_allowance(body),
        system="\n".join(_text(item, "system") for item in messages if item["role"] in _SYSTEM),
        messages=_turns(messages),
        tools=() if body.get("tool_choice") == "none" else tuple(_tool_names(tools)),
        stream=bool(body.get("stream", False)),
        size=len(compact([tools, items])),
        digest=hashlib.sha256(compact([tools, items]).encode("utf-8", "surrogatepass")).hexdigest(),
        segments=(Segment(compact(tools)), *(Segment(compact(item)) for item in items)),
        wants_usage=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def _allowance(body: Json) -> int:
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    if most is None:
        return _MOST_OUTPUT
    if not isinstance(most, int) or most < 1:
        raise invalid("Invalid value for 'max_completion_tokens': integer of at least 1 expected.")
    return most


def _checked(item: object, where: str) -> Json:
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        raise invalid(f"Missing required parameter: '{where}.role'.")
    if item["role"] not in (*_SYSTEM, "user", "assistant", "tool"):
        raise invalid(f"Invalid value: '{item['role']}'. '{where}.role' is not supported.")
    if item["role"] == "tool" and not isinstance(item.get("tool_call_id"), str):
        raise invalid(f"Missing required parameter: '{where}.tool_call_id'.")
    return item


def _check_answers(messages: Sequence[Json]) -> None:
    """Each call is answered by the tool messages that follow it at once, and nothing else is."""
    waiting: set[str] = set()
    for number, item in enumerate(messages):
        if item["role"] == "tool":
            if item["tool_call_id"] not in waiting:
                raise invalid(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    f"preceding message with 'tool_calls' (messages[{number}])."
                )
            waiting.discard(item["tool_call_id"])
            continue
        if waiting:
            raise _unanswered(waiting)
        waiting = {str(call.get("id")) for call in item.get("tool_calls") or []}
    if waiting:
        raise _unanswered(waiting)


def _unanswered(ids: set[str]) -> Exception:
    return invalid(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        f"each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        f"{', '.join(sorted(ids))}"
    )


def _turns(messages: Sequence[Json]) -> tuple[Message, ...]:
    """The conversation as turns: what tools answered is the user's, as in the other format."""
    spoken = [
        (Role.ASSISTANT if item["role"] == "assistant" else Role.USER, item)
        for item in messages
        if item["role"] not in _SYSTEM
    ]
    return tuple(
        Message(role, tuple(block for _, item in group for block in _blocks(item)))
        for role, group in groupby(spoken, key=lambda turn: turn[0])
    )


def _blocks(item: Json) -> Iterator[Block]:
    if item["role"] == "tool":
        yield ToolResult(item["tool_call_id"], _text(item, "content"))
        return
    text = _text(item, "content")
    if text:
        yield Text(text)
    for call in item.get("tool_calls") or []:
        function = call.get("function") or {}
        yield ToolUse(str(function.get("name")), _arguments(function), str(call.get("id")))


def _arguments(function: Json) -> Json:
    try:
        found: Any = json.loads(function.get("arguments") or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(item: Json, where: str) -> str:
    content = item.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise invalid(f"Invalid type for '{where}': expected a string or an array of objects.")
    parts = (part.get("text") for part in content if isinstance(part, dict))
    return "\n".join(part for part in parts if isinstance(part, str))


def _tool_names(tools: object) -> Iterator[str]:
    if not isinstance(tools, list):
        raise invalid("Invalid type for 'tools': expected an array of objects.")
    for number, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise invalid(f"Missing required parameter: 'tools[{number}].function.name'.")
        yield function["name"]
