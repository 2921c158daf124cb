"""Failures come when, where and as often as the scenario says, and leave no trace otherwise."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.sandbox.model import FaultKind, parse_scenario
from app.sandbox.model.conversation import conversation_of
from app.sandbox.model.faults import FaultBook, within_allowance
from app.sandbox.model.parse import parse_request
from app.sandbox.model.service import ModelService
from app.sandbox.model.wire import Reply, StopReason, Text, ToolUse, call, say
from tests.sandbox.model.builders import (
    KEY,
    MODEL,
    NEEDLE,
    PATH,
    added,
    body,
    scenario,
    system,
    tool,
    turn,
    with_results,
)

HEADERS = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
FIRST = body(tools=[tool("read_patch")])
SECOND = with_results(FIRST, turn(scenario(), FIRST), [added(PATH, NEEDLE)])


async def ask(service: ModelService, *requests: dict[str, Any]) -> list[httpx.Response]:
    transport = httpx.ASGITransport(app=service.asgi())
    async with httpx.AsyncClient(transport=transport, base_url="http://model") as client:
        return [
            await client.post("/v1/messages", headers=HEADERS, json=request) for request in requests
        ]


def serve(*faults: dict[str, Any]) -> ModelService:
    return ModelService(scenario(faults=[{"agent": "security"} | fault for fault in faults]), KEY)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streaming"])
@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [
        ("rate_limit", 429, "rate_limit_error"),
        ("overloaded", 529, "overloaded_error"),
        ("server_error", 500, "api_error"),
        ("auth", 401, "authentication_error"),
    ],
)
async def test_a_refusal_is_an_error_body_and_the_next_call_is_well(
    kind: str, status: int, error: str, stream: bool
) -> None:
    """The status and type are the provider's; nothing was answered, so no tokens are counted."""
    service = serve({"kind": kind})
    answers = await ask(service, FIRST | {"stream": stream}, FIRST)
    assert [answer.status_code for answer in answers] == [status, 200]
    assert answers[0].json()["error"]["type"] == error
    assert "retry-after" not in answers[0].headers
    assert (service.calls[0].input_tokens, service.calls[0].output_tokens) == (0, 0)


@pytest.mark.parametrize(("seconds", "header"), [(2, "2"), (0.5, "0.5"), (0, "0")])
async def test_a_rate_limit_may_say_how_long(seconds: float, header: str) -> None:
    """`retry-after` is in seconds, as clients read it."""
    (answer,) = await ask(serve({"kind": "rate_limit", "retry_after": seconds}), FIRST)
    assert answer.headers["retry-after"] == header


async def test_length_cuts_the_text() -> None:
    """Half of the XML and `max_tokens`: nobody can take it for a whole answer."""
    cut, whole = await ask(serve({"kind": "length"}), SECOND, SECOND)
    text, full = (answer.json()["content"][0]["text"] for answer in (cut, whole))
    assert cut.json()["stop_reason"] == "max_tokens"
    assert full.startswith(text)
    assert len(text) == len(full) // 2


async def test_length_on_a_tool_turn_leaves_no_tool_call() -> None:
    """A call that was never written whole cannot be made."""
    (answer,) = await ask(serve({"kind": "length"}), FIRST)
    assert [block["type"] for block in answer.json()["content"]] == ["text"]
    assert answer.json()["stop_reason"] == "max_tokens"


async def test_nonsense_is_prose_and_empty_is_nothing() -> None:
    """Both are answers of status 200 without any XML in them."""
    nonsense, empty = await ask(serve({"kind": "nonsense"}, {"kind": "empty"}), SECOND, SECOND)
    assert "<" not in nonsense.json()["content"][0]["text"]
    assert empty.json()["content"] == []
    assert {nonsense.json()["stop_reason"], empty.json()["stop_reason"]} == {"end_turn"}


@pytest.mark.parametrize("kind", [kind for kind in FaultKind if not kind.spoils_stream])
async def test_every_kind_can_be_asked_for(kind: FaultKind) -> None:
    """No kind is accepted by the schema and then ignored."""
    answers = await ask(serve({"kind": kind.value}), SECOND, SECOND)
    assert (answers[0].status_code, answers[0].json().get("content")) != (
        answers[1].status_code,
        answers[1].json().get("content"),
    )


@pytest.mark.parametrize(
    ("fault", "hit"),
    [
        pytest.param({}, [True, False, False, False], id="the first call"),
        pytest.param({"call": 3}, [False, False, True, False], id="the third call"),
        pytest.param({"call": 2, "times": 2}, [False, True, True, False], id="twice"),
        pytest.param({"times": "always"}, [True] * 4, id="always"),
        pytest.param({"agent": "*", "call": 2}, [False, True, False, False], id="any agent"),
        pytest.param({"agent": "fixer"}, [False] * 4, id="another agent"),
        pytest.param({"model": MODEL}, [True, False, False, False], id="that model"),
        pytest.param({"model": "claude-opus-4-6"}, [False] * 4, id="another model"),
    ],
)
async def test_when_a_fault_hits(fault: dict[str, Any], hit: list[bool]) -> None:
    """Calls of the agent are counted over the life of the server, conversations regardless."""
    answers = await ask(serve({"kind": "overloaded"} | fault), FIRST, SECOND, FIRST, SECOND)
    assert [answer.status_code == 529 for answer in answers] == hit


async def test_a_turn_of_each_conversation() -> None:
    """Per conversation, the turn is read off the messages; a retry of it meets the fault again."""
    service = serve({"kind": "overloaded", "per": "conversation", "call": 2, "times": 3})
    answers = await ask(service, FIRST, SECOND, FIRST, SECOND, SECOND, SECOND)
    assert [answer.status_code for answer in answers] == [200, 529, 200, 529, 529, 200]


async def test_agents_are_counted_apart() -> None:
    """`agent: "*"` means the n-th call of each agent."""
    service = serve({"agent": "*", "kind": "overloaded", "call": 2, "times": 2})
    other = FIRST | {"system": system("general")}
    answers = await ask(service, FIRST, other, FIRST, other, FIRST)
    assert [answer.status_code for answer in answers] == [200, 200, 529, 529, 200]


async def test_a_request_that_is_refused_anyway_uses_up_no_fault() -> None:
    """A malformed request is not a call of the agent."""
    answers = await ask(serve({"kind": "overloaded"}), FIRST | {"max_tokens": 0}, FIRST)
    assert [answer.status_code for answer in answers] == [400, 529]


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 14))
def test_a_fault_hits_exactly_its_window(start: int, times: int, requests: int) -> None:
    """From the `call`-th request on, `times` requests, no more and no less."""
    fault = {"agent": "security", "kind": "empty", "call": start, "times": times}
    book = FaultBook(parse_scenario({"faults": [fault]}).faults)
    conversation = conversation_of(parse_request(json.dumps(FIRST).encode()))
    hits = [book.next_fault(conversation, MODEL) is not None for _ in range(requests)]
    assert hits == [start <= number < start + times for number in range(1, requests + 1)]


@pytest.mark.parametrize(
    ("reply", "chars", "blocks", "reason"),
    [
        pytest.param(say("abcd"), 4, (Text("abcd"),), StopReason.END_TURN, id="fits"),
        pytest.param(say("abcd"), 3, (Text("abc"),), StopReason.MAX_TOKENS, id="cut"),
        pytest.param(
            call(ToolUse("t", {"a": "b"}), ToolUse("t", {"a": "c"})),
            5,
            (ToolUse("t", {"a": "b"}),),
            StopReason.MAX_TOKENS,
            id="second call does not fit",
        ),
        pytest.param(call(ToolUse("t", {"a": "b"})), 1, (), StopReason.MAX_TOKENS, id="none fits"),
    ],
)
def test_the_allowance_of_the_request_is_kept(
    reply: Reply, chars: int, blocks: tuple[Any, ...], reason: StopReason
) -> None:
    """`max_tokens` bounds what is written; half a tool call is none."""
    kept = within_allowance(reply, chars)
    assert (kept.blocks, kept.stop_reason) == (blocks, reason)


async def test_a_small_max_tokens_ends_the_answer() -> None:
    """A client that allows too little gets the cut text and is told why."""
    (answer,) = await ask(serve(), SECOND | {"max_tokens": 5})
    assert answer.json()["stop_reason"] == "max_tokens"
    assert answer.json()["usage"]["output_tokens"] == 5
