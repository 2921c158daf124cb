"""The two clients that matter speak to the server over real HTTP, streaming and not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, get_args

import anthropic
import httpx
import pytest
from anthropic.types import Model
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from app.sandbox.model import ModelServer
from app.sandbox.model.scenario import MODELS
from tests.sandbox.model.builders import (
    KEY,
    MODEL,
    NEEDLE,
    PATH,
    added,
    body,
    changed_files,
    scenario,
    system,
    tool,
)

PATCH = added(PATH, f"import os\n{NEEDLE}\n")


@pytest.fixture(name="server")
async def _server() -> AsyncIterator[ModelServer]:
    async with ModelServer(scenario(), api_key=KEY) as server:
        yield server


@pytest.fixture(name="client")
async def _client(server: ModelServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key=KEY, max_retries=0) as client:
        yield client


def conversation(reply: Any, result: Any) -> list[Any]:
    """The messages after one tool call was answered."""
    answered = [
        {"type": "tool_result", "tool_use_id": block.id, "content": result}
        for block in reply.content
    ]
    return [
        {"role": "user", "content": changed_files(PATH)},
        {"role": "assistant", "content": [block.to_dict() for block in reply.content]},
        {"role": "user", "content": answered},
    ]


@pytest.mark.parametrize("blocks", [False, True], ids=["strings", "blocks"])
async def test_the_sdk_gets_the_same_streaming_and_not(
    client: anthropic.AsyncAnthropic, blocks: bool
) -> None:
    """One request has one answer, however it travels: content, reason, tokens and id agree."""
    prompt: Any = system("security")
    result: Any = PATCH
    if blocks:
        prompt = [{"type": "text", "text": prompt, "cache_control": {"type": "ephemeral"}}]
        result = [{"type": "text", "text": PATCH}]
    fixed: Any = {
        "model": MODEL,
        "max_tokens": 2000,
        "system": prompt,
        "tools": [tool("read_patch")],
    }
    messages: list[Any] = [{"role": "user", "content": changed_files(PATH)}]
    reasons = []
    for _ in range(2):
        whole = await client.messages.create(**fixed, messages=messages)
        async with client.messages.stream(**fixed, messages=messages) as stream:
            streamed = await stream.get_final_message()
        assert streamed.to_dict() == whole.to_dict()
        reasons.append(whole.stop_reason)
        if whole.stop_reason == "tool_use":
            messages = conversation(whole, result)
    assert reasons == ["tool_use", "end_turn"]
    assert isinstance(whole.content[0], anthropic.types.TextBlock)
    assert "<line>2</line>" in whole.content[0].text


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streaming"])
async def test_pydantic_ai_drives_a_review(server: ModelServer, streaming: bool) -> None:
    """The runtime's library runs the tool loop to the finding, with usage counted."""
    provider = AnthropicProvider(base_url=server.url, api_key=KEY)
    # Without an allowance of its own the library streams every call, whatever it is asked for.
    agent = Agent(
        AnthropicModel(MODEL, provider=provider),
        instructions=system("security"),
        model_settings={"max_tokens": 2000},
    )

    @agent.tool_plain
    def read_patch(path: str) -> str:
        return added(path, f"{NEEDLE}\n")

    if streaming:
        async with agent.run_stream(changed_files(PATH)) as stream:
            text = await stream.get_output()
            usage = stream.usage
    else:
        run = await agent.run(changed_files(PATH))
        text, usage = run.output, run.usage
    assert "<title>A name goes into a command</title>" in text
    assert [call.tools for call in server.calls] == [("read_patch",), ()]
    assert usage.input_tokens == sum(call.input_tokens for call in server.calls)
    assert usage.output_tokens == sum(call.output_tokens for call in server.calls)
    assert {call.stream for call in server.calls} == {streaming}


async def test_the_events_of_a_stream_come_in_the_documented_order(server: ModelServer) -> None:
    """Start, ping, each block opened and closed, the delta with reason and tokens, stop."""
    two = [{"role": "user", "content": changed_files("a.py", "b.py")}]
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as client:
        answer = await client.post("/v1/messages", json=body(messages=two, stream=True))
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [
        dict(line.split(": ", 1) for line in event.split("\n"))
        for event in answer.text.removesuffix("\n\n").split("\n\n")
    ]
    names = [event["event"] for event in events]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert names == ["message_start", "ping", *block, *block, "message_delta", "message_stop"]
    data = [json.loads(event["data"]) for event in events]
    assert [item["type"] for item in data] == names
    assert data[2]["content_block"]["input"] == {}
    assert json.loads(data[3]["delta"]["partial_json"]) == {"path": "a.py"}
    assert data[-2]["delta"]["stop_reason"] == "tool_use"
    assert data[-2]["usage"]["output_tokens"] == server.calls[0].output_tokens


async def test_a_long_text_is_streamed_in_pieces(client: anthropic.AsyncAnthropic) -> None:
    """A client must put deltas together: no text of some length comes at once."""
    first: Any = await client.messages.create(**body(tools=[tool("read_patch")]))
    request = body(messages=conversation(first, PATCH), tools=[tool("read_patch")])
    async with client.messages.stream(**request) as stream:
        pieces = [piece async for piece in stream.text_stream]
        whole = await stream.get_final_text()
    assert len(pieces) > 1
    assert "".join(pieces) == whole


@pytest.mark.parametrize(
    ("key", "model", "error"),
    [
        ("sk-wrong", MODEL, anthropic.AuthenticationError),
        (KEY, "claude-sonet", anthropic.NotFoundError),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
async def test_the_sdk_classifies_errors(
    server: ModelServer, key: str, model: str, error: type[Exception], streaming: bool
) -> None:
    """An error arrives as its own exception, before any stream begins."""
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key=key) as client:
        with pytest.raises(error):
            await client.messages.create(**body(model=model, stream=streaming))


async def test_models_are_listed(client: anthropic.AsyncAnthropic) -> None:
    """`doctor` can ask which models there are, one by one and all."""
    listed = [model.id async for model in client.models.list()]
    assert listed == list(MODELS)
    assert (await client.models.retrieve(MODEL)).id == MODEL


def test_every_model_that_the_sdk_names_answers() -> None:
    """The default list follows the installed SDK."""
    literal, _ = get_args(Model)
    assert set(get_args(literal)) <= set(MODELS)
