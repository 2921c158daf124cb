"""Stories of the direct runtime over the real Anthropic wire format, with the network replaced."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal

import httpx2
import pytest

from app.agents.port import (
    AgentErrorKind,
    AgentEvent,
    AgentLimits,
    AgentTask,
    FinishReason,
    HostTool,
    ModelCallStarted,
    ModelRef,
    Retrying,
)
from app.agents.runtimes.direct import (
    DirectRuntime,
    ProviderSettings,
    WireFormat,
)
from app.agents.runtimes.direct.session import Surroundings
from app.domain.runs import AgentName

Event = dict[str, object]
OPUS = ModelRef("anthropic", "claude-opus-4-7")
OLDER_OPUS = ModelRef("anthropic", "claude-opus-4-6")
KEY = "sk-test-0123456789abcdef"


def sse(*events: Event) -> httpx2.Response:
    body = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=body)


def opening() -> Event:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 7,
        "output_tokens": 1,
    }
    return {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        },
    }


def block(index: int, start: Event, delta: Event) -> tuple[Event, Event, Event]:
    return (
        {"type": "content_block_start", "index": index, "content_block": start},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    )


def closing(reason: str) -> tuple[Event, Event]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return (
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 12}},
        {"type": "message_stop"},
    )


def says(text: str, reason: str = "end_turn") -> httpx2.Response:
    body = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})
    return sse(opening(), *body, *closing(reason))


def calls(name: str, arguments: str) -> httpx2.Response:
    start: Event = {"type": "tool_use", "id": "t1", "name": name, "input": {}}
    delta: Event = {"type": "input_json_delta", "partial_json": arguments}
    return sse(opening(), *block(0, start, delta), *closing("tool_use"))


def fault(status: int, kind: str, **headers: str) -> httpx2.Response:
    error = {"type": kind, "message": f"trouble with {KEY}"}
    return httpx2.Response(status, headers=headers, json={"type": "error", "error": error})


class Provider:
    """Answers requests in order and keeps them."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, object]] = []
        self.headers: list[Mapping[str, str]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(request.content))
        self.headers.append(request.headers)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def runtime(self) -> DirectRuntime:
        settings = ProviderSettings("anthropic", WireFormat.ANTHROPIC, KEY, "http://model.test")
        client: Callable[[], httpx2.AsyncClient] = lambda: httpx2.AsyncClient(  # noqa: E731
            transport=httpx2.MockTransport(self)
        )
        return DirectRuntime([settings], around=Surroundings(sleep=no_sleep), http_client=client)


async def no_sleep(_: float) -> None:
    return None


async def echo(arguments: Mapping[str, object]) -> str:
    return f"got {arguments['path']}"


ECHO = HostTool("read_file", "Reads.", {"type": "object", "properties": {}}, echo)


def task(*, models: tuple[ModelRef, ...] = (OPUS,), limits: AgentLimits | None = None) -> AgentTask:
    return AgentTask(
        agent=AgentName.SECURITY,
        system="# Mergeward agent: security\nrules",
        prompt="please",
        models=models,
        tools=(ECHO,),
        limits=limits or AgentLimits(),
        key="k",
    )


class NotChargedError(Exception):
    """The sink could not record."""


class Events(list[AgentEvent]):
    async def __call__(self, event: AgentEvent) -> None:
        self.append(event)


async def test_a_session_reads_answers_and_counts() -> None:
    """One tool call, one answer: text, tokens apart by cache, cost, and events in order."""
    provider = Provider(calls("read_file", '{"path": "a.py"}'), says("<findings/>"))
    events = Events()
    async with provider.runtime() as runtime:
        result = await runtime.run(task(), events)
    assert (result.text, result.finish, result.error) == ("<findings/>", FinishReason.STOP, None)
    assert result.tool_calls == 1
    used = result.usage
    assert (used.model_calls, used.input_tokens, used.cache_read_tokens) == (2, 20, 200)
    assert (used.cache_write_tokens, used.output_tokens) == (14, 24)
    assert used.cost_usd is not None
    assert used.cost_usd > Decimal(0)
    names = [type(event).__name__ for event in events]
    assert names == [
        "Started",
        "ModelCallStarted",
        "ModelCallFinished",
        "ToolCalled",
        "ModelCallStarted",
        "ModelCallFinished",
        "Text",
        "Finished",
    ]


async def test_what_goes_over_the_wire() -> None:
    """The system prompt begins with our line and has cache points; the tool's answer follows."""
    provider = Provider(calls("read_file", '{"path": "a.py"}'), says("done"))
    async with provider.runtime() as runtime:
        await runtime.run(task())
    first, second = provider.requests
    system = first["system"]
    assert isinstance(system, list)
    assert system[0]["text"].startswith("# Mergeward agent: security\n")
    assert system[0]["cache_control"]["type"] == "ephemeral"
    assert first["stream"] is True
    assert provider.headers[0]["x-api-key"] == KEY
    assert "authorization" not in provider.headers[0]
    messages = second["messages"]
    assert isinstance(messages, list)
    assert messages[-1]["content"][0]["content"] == [{"type": "text", "text": "got a.py"}]


async def test_an_unknown_price_is_unknown() -> None:
    """A model without a published price makes the cost None, not zero."""
    provider = Provider(says("x"))
    async with provider.runtime() as runtime:
        result = await runtime.run(task(models=(ModelRef("anthropic", "house-model"),)))
    assert result.usage.cost_usd is None
    assert result.usage.input_tokens == 10


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(fault(401, "authentication_error"), AgentErrorKind.AUTH, id="401"),
        pytest.param(fault(403, "permission_error"), AgentErrorKind.AUTH, id="403"),
        pytest.param(fault(404, "not_found_error"), AgentErrorKind.UNKNOWN_MODEL, id="404"),
        pytest.param(fault(402, "billing_error"), AgentErrorKind.QUOTA, id="402"),
        pytest.param(
            httpx2.Response(
                400,
                json={
                    "type": "error",
                    "error": {
                        "type": "invalid_request_error",
                        "message": "prompt is too long: 210000 tokens > 200000 maximum",
                    },
                },
            ),
            AgentErrorKind.CONTEXT_OVERFLOW,
            id="overflow",
        ),
        pytest.param(fault(400, "invalid_request_error"), AgentErrorKind.REJECTED, id="400"),
    ],
)
async def test_faults_that_are_final(answer: httpx2.Response, kind: AgentErrorKind) -> None:
    """A request that is wrong itself is sent once, classified, and its message holds no key."""
    provider = Provider(answer)
    async with provider.runtime() as runtime:
        result = await runtime.run(task(models=(OPUS, OLDER_OPUS)))
    assert result.error is not None
    assert result.error.kind is kind
    assert KEY not in result.error.message
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(fault(429, "rate_limit_error"), AgentErrorKind.RATE_LIMITED, id="429"),
        pytest.param(fault(529, "overloaded_error"), AgentErrorKind.OVERLOADED, id="529"),
        pytest.param(httpx2.Response(503, text="no"), AgentErrorKind.OVERLOADED, id="503"),
        pytest.param(fault(500, "api_error"), AgentErrorKind.SERVER, id="500"),
        pytest.param(httpx2.ConnectError("no route"), AgentErrorKind.CONNECTION, id="connect"),
        pytest.param(httpx2.ReadTimeout("silent"), AgentErrorKind.STALLED, id="read-timeout"),
        pytest.param(sse(opening()), AgentErrorKind.CUT_STREAM, id="cut-stream"),
        pytest.param(
            sse(
                opening(),
                {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
            ),
            AgentErrorKind.OVERLOADED,
            id="error-inside-the-stream",
        ),
    ],
)
async def test_faults_that_are_tried_again(
    answer: httpx2.Response | Exception, kind: AgentErrorKind
) -> None:
    """The SDK does not repeat by itself; we do, visibly, and the session goes on."""
    provider = Provider(answer, says("<findings/>"))
    events = Events()
    async with provider.runtime() as runtime:
        result = await runtime.run(task(), events)
    assert result.error is None
    assert result.usage.model_calls == 2
    assert len(provider.requests) == 2
    (retry,) = [event for event in events if isinstance(event, Retrying)]
    assert retry.failure.kind is kind


async def test_the_chain_is_followed_within_its_family() -> None:
    """After two failures the older sibling is asked; a model of another family never is."""
    provider = Provider(
        fault(529, "overloaded_error"), fault(529, "overloaded_error"), says("<findings/>")
    )
    chain = (OPUS, ModelRef("anthropic", "claude-haiku-4-5"), OLDER_OPUS)
    async with provider.runtime() as runtime:
        result = await runtime.run(task(models=chain))
    assert [request["model"] for request in provider.requests] == [
        "claude-opus-4-7",
        "claude-opus-4-7",
        "claude-opus-4-6",
    ]
    assert result.model == OLDER_OPUS


async def test_retry_after_is_heard() -> None:
    """The provider's own wish is how long we wait."""
    provider = Provider(fault(429, "rate_limit_error", **{"retry-after": "17"}), says("x"))
    events = Events()
    async with provider.runtime() as runtime:
        await runtime.run(task(), events)
    assert [event.wait_s for event in events if isinstance(event, Retrying)] == [17.0]


async def test_length_is_told() -> None:
    """A cut-off answer is no error and no success of the model: its finish says length."""
    provider = Provider(says("<findings><finding>", "max_tokens"))
    async with provider.runtime() as runtime:
        result = await runtime.run(task())
    assert (result.finish, result.text) == (FinishReason.LENGTH, "<findings><finding>")


async def test_no_configured_provider() -> None:
    """A task whose provider is unknown ends as a value that names the models."""
    provider = Provider()
    async with provider.runtime() as runtime:
        result = await runtime.run(task(models=(ModelRef("elsewhere", "m"),)))
    assert result.error is not None
    assert result.error.kind is AgentErrorKind.NO_MODEL
    assert "elsewhere/m" in result.error.message


async def test_the_first_model_call_can_be_recorded_before_it_is_made() -> None:
    """A sink that refuses at the first model call keeps the request from leaving."""
    provider = Provider(says("x"))

    async def refuse(event: AgentEvent) -> None:
        if isinstance(event, ModelCallStarted):
            raise NotChargedError

    async with provider.runtime() as runtime:
        with pytest.raises(NotChargedError):
            await runtime.run(task(), refuse)
    assert provider.requests == []


def test_the_key_is_in_no_repr() -> None:
    """Settings may be logged; their key may not."""
    settings = ProviderSettings("a", WireFormat.ANTHROPIC, KEY, headers={"x": KEY})
    assert KEY not in repr(settings)


def chunk(delta: Event, reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    body = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-5.4",
        "choices": [choice],
    }
    return f"data: {json.dumps(body)}\n\n"


async def test_the_openai_wire() -> None:
    """The same session over chat completions: tools, text, usage, and the key as that API wants."""
    call = {
        "index": 0,
        "id": "t1",
        "type": "function",
        "function": {"name": "read_file", "arguments": '{"path": "a.py"}'},
    }
    usage = {
        "prompt_tokens": 110,
        "completion_tokens": 12,
        "total_tokens": 122,
        "prompt_tokens_details": {"cached_tokens": 100},
    }
    last = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-5.4",
        "choices": [],
        "usage": usage,
    }
    ending = f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n"
    headers = {"content-type": "text/event-stream"}
    first = chunk({"role": "assistant", "tool_calls": [call]}) + chunk({}, "tool_calls") + ending
    second = chunk({"role": "assistant", "content": "<findings/>"}) + chunk({}, "stop") + ending
    provider = Provider(
        httpx2.Response(200, headers=headers, text=first),
        httpx2.Response(200, headers=headers, text=second),
    )
    settings = ProviderSettings("openai", WireFormat.OPENAI, KEY, "http://model.test/v1")
    client: Callable[[], httpx2.AsyncClient] = lambda: httpx2.AsyncClient(  # noqa: E731
        transport=httpx2.MockTransport(provider)
    )
    async with DirectRuntime([settings], http_client=client) as runtime:
        result = await runtime.run(task(models=(ModelRef("openai", "gpt-5.4"),)))
    assert (result.text, result.error, result.tool_calls) == ("<findings/>", None, 1)
    used = result.usage
    assert (used.input_tokens, used.cache_read_tokens, used.output_tokens) == (20, 200, 24)
    assert used.cost_usd
    assert provider.headers[0]["authorization"] == f"Bearer {KEY}"
    messages = provider.requests[0]["messages"]
    assert isinstance(messages, list)
    assert messages[0]["content"].startswith("# Mergeward agent: security\n")
