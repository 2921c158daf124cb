"""The other wire format: OpenAI's own SDK speaks to the server over real HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from app.sandbox.model import ModelServer
from app.sandbox.model.chat_parse import parse_chat
from app.sandbox.model.errors import WireError
from app.sandbox.model.wire import Role, Text, ToolResult, ToolUse
from tests.sandbox.model.builders import KEY, NEEDLE, PATH, added, changed_files, scenario, system

MODEL = "gpt-5.4"
PATCH = added(PATH, f"import os\n{NEEDLE}\n")
READ: Any = {
    "type": "function",
    "function": {"name": "read_patch", "parameters": {"type": "object", "properties": {}}},
}
ASKED: list[Any] = [
    {"role": "system", "content": system("security")},
    {"role": "user", "content": changed_files(PATH)},
]


def after(call_id: str = "c1", result: str = PATCH) -> list[Any]:
    """The messages after one tool call was answered."""
    call = {
        "id": call_id,
        "type": "function",
        "function": {"name": "read_patch", "arguments": json.dumps({"path": PATH})},
    }
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [*ASKED, said, {"role": "tool", "tool_call_id": call_id, "content": result}]


@pytest.fixture(name="server")
async def _server() -> AsyncIterator[ModelServer]:
    async with ModelServer(scenario(), api_key=KEY) as server:
        yield server


@pytest.fixture(name="client")
async def _client(server: ModelServer) -> AsyncIterator[openai.AsyncOpenAI]:
    base = f"{server.url}/v1"
    async with openai.AsyncOpenAI(base_url=base, api_key=KEY, max_retries=0) as client:
        yield client


async def test_a_whole_conversation(client: openai.AsyncOpenAI, server: ModelServer) -> None:
    """A tool is asked for, its answer is read, and what was planted is found."""
    first = await client.chat.completions.create(model=MODEL, messages=ASKED, tools=[READ])
    choice = first.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls is not None
    [call] = choice.message.tool_calls
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == (
        "read_patch",
        {"path": PATH},
    )
    second = await client.chat.completions.create(
        model=MODEL, messages=after(call.id), tools=[READ]
    )
    assert second.choices[0].finish_reason == "stop"
    assert "A name goes into a command" in (second.choices[0].message.content or "")
    assert [record.agent for record in server.calls] == ["security", "security"]
    assert second.usage is not None
    assert second.usage.prompt_tokens > second.usage.completion_tokens > 0


@pytest.mark.parametrize("messages", [ASKED, after()], ids=["tool-call", "text"])
async def test_streaming_gives_the_same(client: openai.AsyncOpenAI, messages: list[Any]) -> None:
    """One request has one answer, however it travels: content, calls, reason and tokens."""
    whole = await client.chat.completions.create(model=MODEL, messages=messages, tools=[READ])
    text, arguments, reasons, usages = "", "", [], []
    stream = await client.chat.completions.create(
        model=MODEL,
        messages=messages,
        tools=[READ],
        stream=True,
        stream_options={"include_usage": True},
    )
    async for chunk in stream:
        usages += [chunk.usage] if chunk.usage else []
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                arguments += (call.function.arguments if call.function else None) or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
    message = whole.choices[0].message
    calls = message.tool_calls or []
    assert text == (message.content or "")
    assert arguments == "".join(
        call.function.arguments for call in calls if call.type == "function"
    )
    assert reasons == [whole.choices[0].finish_reason]
    assert whole.usage is not None
    assert [usage.completion_tokens for usage in usages] == [whole.usage.completion_tokens]


async def test_usage_comes_only_when_asked_for(client: openai.AsyncOpenAI) -> None:
    """As with the provider: without `include_usage` a stream holds none."""
    stream = await client.chat.completions.create(model=MODEL, messages=ASKED, stream=True)
    assert [chunk.usage async for chunk in stream if chunk.usage] == []


@pytest.mark.parametrize(
    ("fault", "error", "code"),
    [
        pytest.param("rate_limit", openai.RateLimitError, "rate_limit_exceeded", id="429"),
        pytest.param("unavailable", openai.InternalServerError, None, id="503"),
        pytest.param("server_error", openai.InternalServerError, None, id="500"),
        pytest.param("auth", openai.AuthenticationError, "invalid_api_key", id="401"),
        pytest.param(
            "context_overflow", openai.BadRequestError, "context_length_exceeded", id="context"
        ),
    ],
)
async def test_refusals_are_the_providers(
    fault: str, error: type[openai.APIStatusError], code: str | None
) -> None:
    """The SDK's own classes, and the code that tells one 400 from another."""
    faulty = scenario(faults=[{"agent": "security", "kind": fault}])
    async with ModelServer(faulty, api_key=KEY) as server:
        base = f"{server.url}/v1"
        async with openai.AsyncOpenAI(base_url=base, api_key=KEY, max_retries=0) as client:
            with pytest.raises(error) as caught:
                await client.chat.completions.create(model=MODEL, messages=ASKED)
    assert caught.value.code == code


async def test_a_wrong_key_and_an_unknown_model(server: ModelServer) -> None:
    """401 and 404."""
    base = f"{server.url}/v1"
    async with openai.AsyncOpenAI(base_url=base, api_key="no", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError):
            await client.chat.completions.create(model=MODEL, messages=ASKED)
    async with openai.AsyncOpenAI(base_url=base, api_key=KEY, max_retries=0) as client:
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="gpt-1", messages=ASKED)


def test_a_conversation_is_understood() -> None:
    """System apart, one turn for each change of speaker, tools' answers with the user's."""
    body = {"model": MODEL, "messages": after(), "tools": [READ], "max_completion_tokens": 9}
    request = parse_chat(json.dumps(body).encode())
    assert request.system == system("security")
    assert [(turn.role, [type(block) for block in turn.blocks]) for turn in request.messages] == [
        (Role.USER, [Text]),
        (Role.ASSISTANT, [ToolUse]),
        (Role.USER, [ToolResult]),
    ]
    assert (request.tools, request.max_tokens) == (("read_patch",), 9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"messages": []}, "'messages'", id="no-messages"),
        pytest.param({"model": None}, "model", id="no-model"),
        pytest.param({"max_tokens": 0}, "max_completion_tokens", id="no-room"),
        pytest.param({"messages": [{"role": "robot", "content": "x"}]}, "robot", id="who"),
        pytest.param({"messages": after()[:-1]}, "c1", id="unanswered-call"),
        pytest.param(
            {"messages": [*ASKED, {"role": "tool", "tool_call_id": "c9", "content": ""}]},
            "preceding message",
            id="unasked-answer",
        ),
        pytest.param({"tools": [{"type": "function"}]}, "tools[0]", id="nameless-tool"),
        pytest.param({"messages": [{"role": "user", "content": 7}]}, "content", id="odd-content"),
    ],
)
def test_what_the_provider_would_refuse(change: dict[str, Any], words: str) -> None:
    """A 400 that names the place: a client that is wrong here is wrong there."""
    body = {"model": MODEL, "messages": ASKED, **change}
    with pytest.raises(WireError) as caught:
        parse_chat(json.dumps(body).encode())
    assert caught.value.status == 400
    assert words in caught.value.message
