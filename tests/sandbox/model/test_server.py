"""The server lives inside its caller, and tells what it was asked without telling secrets."""

from __future__ import annotations

import asyncio
import json
import math
import signal

import httpx
import pytest

from app.sandbox.model import ModelServer, ScenarioError, load_scenario
from tests.sandbox.model.builders import (
    KEY,
    MODEL,
    NEEDLE,
    PATH,
    added,
    body,
    scenario,
    tool,
    turn,
    with_results,
)

HEADERS = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}


async def test_it_serves_on_a_free_port_and_frees_it() -> None:
    """Two at once have two ports; after the end nobody answers."""
    async with ModelServer("demo", api_key=KEY) as one, ModelServer("demo", api_key=KEY) as two:
        urls = {one.url, two.url}
        assert len(urls) == 2
        async with httpx.AsyncClient() as client:
            for url in urls:
                assert (await client.get(f"{url}/v1/models", headers=HEADERS)).status_code == 200
    with pytest.raises(RuntimeError, match="async with"):
        _ = one.url
    async with httpx.AsyncClient() as client:
        for url in urls:
            with pytest.raises(httpx.ConnectError):
                await client.get(url)


async def test_signals_stay_the_caller_s() -> None:
    """Ctrl-C is for the program that embeds the server."""
    before = signal.getsignal(signal.SIGINT)
    async with ModelServer(scenario(), api_key=KEY):
        assert signal.getsignal(signal.SIGINT) is before
    assert signal.getsignal(signal.SIGINT) is before


async def test_an_open_connection_does_not_hold_the_end_up() -> None:
    """A client that keeps its connection alive does not keep the server."""
    async with httpx.AsyncClient() as client:
        async with ModelServer(scenario(), api_key=KEY) as server:
            await client.get(f"{server.url}/v1/models", headers=HEADERS)
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 2


def test_a_wrong_start_is_refused_at_once() -> None:
    """A server that would let anyone in, or has no script, is never started."""
    with pytest.raises(ValueError, match="api_key"):
        ModelServer(scenario(), api_key="")
    with pytest.raises(ScenarioError):
        ModelServer("nowhere", api_key=KEY)


async def test_calls_say_who_asked_what_and_never_the_key() -> None:
    """Agent, model, tools asked for, tokens: enough for a table, nothing to leak."""
    first = body(tools=[tool("read_patch")])
    second = with_results(first, turn(scenario(), first), [added(PATH, NEEDLE)])
    async with ModelServer(scenario(), api_key=KEY) as server:
        async with httpx.AsyncClient(base_url=server.url, headers=HEADERS) as client:
            answers = [
                await client.post("/v1/messages", json=request)
                for request in (first, second | {"stream": True})
            ]
        one, two = server.calls
    assert (one.number, one.agent, one.model, one.stream) == (1, "security", MODEL, False)
    assert (one.status, one.tools, one.stop_reason) == (200, ("read_patch",), "tool_use")
    assert (two.number, two.stream, two.tools, two.stop_reason) == (2, True, (), "end_turn")
    assert one.request_id == answers[0].headers["request-id"]
    assert KEY not in repr(server.calls)
    assert NEEDLE not in repr(server.calls)


@pytest.mark.parametrize("ratio", [4.0, 2.5, 10.0])
async def test_tokens_are_characters_over_a_ratio(ratio: float) -> None:
    """The count follows from the request's own text, so a longer prompt costs more."""
    script = scenario(usage={"input_chars_per_token": ratio})
    sent = body()
    spoken = {key: sent.get(key) for key in ("system", "tools", "messages")}
    size = len(json.dumps(spoken, ensure_ascii=False, separators=(",", ":")))
    async with (
        ModelServer(script, api_key=KEY) as server,
        httpx.AsyncClient(base_url=server.url, headers=HEADERS) as client,
    ):
        usage = (await client.post("/v1/messages", json=sent)).json()["usage"]
    assert usage["input_tokens"] == math.ceil(size / ratio)
    assert usage["cache_read_input_tokens"] == usage["cache_creation_input_tokens"] == 0


async def test_the_same_request_has_the_same_answer() -> None:
    """Nothing is remembered from one request to the next."""
    demo = load_scenario("demo")
    async with (
        ModelServer(demo, api_key=KEY) as server,
        httpx.AsyncClient(base_url=server.url, headers=HEADERS) as client,
    ):
        answers = [await client.post("/v1/messages", json=body()) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[0].headers["request-id"] != answers[1].headers["request-id"]
