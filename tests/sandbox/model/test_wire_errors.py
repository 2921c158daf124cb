"""What the provider refuses, this server refuses with the same status and error type."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from app.sandbox.model.service import MAX_BODY, ModelService
from tests.sandbox.model.builders import KEY, body, scenario, tool

HEADERS = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
USER = {"role": "user", "content": "hello"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}}
ASKED = {"role": "assistant", "content": [USE]}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
CACHED = {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}


def said(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


@pytest.fixture(name="service")
def _service() -> ModelService:
    return ModelService(scenario(), KEY)


@pytest.fixture(name="client")
async def _client(service: ModelService) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=service.asgi())
    async with httpx.AsyncClient(transport=transport, base_url="http://model") as client:
        yield client


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"max_tokens": None}, "max_tokens: Field required", id="max_tokens missing"),
        pytest.param({"max_tokens": 0}, "max_tokens: Input should be", id="max_tokens 0"),
        pytest.param({"max_tokens": True}, "max_tokens: Input should be", id="max_tokens bool"),
        pytest.param({"model": None}, "model: Field required", id="model missing"),
        pytest.param({"messages": None}, "messages: Field required", id="messages missing"),
        pytest.param({"messages": []}, "at least one message", id="no messages"),
        pytest.param({"messages": ["x"]}, "messages.0", id="message no mapping"),
        pytest.param({"messages": [{"role": "user"}]}, "messages.0.content", id="no content"),
        pytest.param({"messages": [said()]}, "non-empty content", id="empty content"),
        pytest.param(
            {"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role", id="unknown role"
        ),
        pytest.param({"messages": [{"role": ["user"], "content": "x"}]}, "role", id="role a list"),
        pytest.param({"messages": [said("x")]}, "messages.0.content.0.type", id="block no mapping"),
        pytest.param({"messages": [said({"type": "song"})]}, "Input tag 'song'", id="block type"),
        pytest.param({"messages": [said({"type": "text"})]}, ".text: Field", id="text missing"),
        pytest.param(
            {"messages": [{"role": "user", "content": ""}]}, "must be non-empty", id="empty text"
        ),
        pytest.param({"messages": [ASKED, said(RESULT)]}, "first message", id="assistant first"),
        pytest.param(
            {"messages": [USER, {"role": "assistant", "content": "x"}]},
            "must end with a user message",
            id="assistant last",
        ),
        pytest.param({"messages": [said(RESULT)]}, "unexpected `tool_use_id`", id="result alone"),
        pytest.param(
            {"messages": [USER, ASKED, said(RESULT | {"tool_use_id": "toolu_2"})]},
            "unexpected `tool_use_id`",
            id="result of another use",
        ),
        pytest.param({"messages": [USER, ASKED, USER]}, "without `tool_result`", id="no result"),
        pytest.param(
            {"messages": [USER, ASKED, said(RESULT, RESULT)]}, "single result", id="two results"
        ),
        pytest.param(
            {"messages": [USER, said(USE, USE, role="assistant"), said(RESULT)]},
            "ids must be unique",
            id="doubled use",
        ),
        pytest.param(
            {"messages": [USER, ASKED, said(RESULT), ASKED, said(RESULT)]},
            "ids must be unique",
            id="id of an earlier turn",
        ),
        pytest.param({"messages": [said(USE)]}, "cannot be in `user`", id="user uses a tool"),
        pytest.param(
            {"messages": [USER, said(USE | {"input": "x"}, role="assistant"), said(RESULT)]},
            "tool_use.input",
            id="input no mapping",
        ),
        pytest.param(
            {"messages": [said({"type": "tool_result"})]}, "tool_use_id", id="result without id"
        ),
        pytest.param({"system": 5}, "system: Input should be", id="system a number"),
        pytest.param({"system": [{"type": "text"}]}, "system.0.text", id="system block"),
        pytest.param({"tools": {}, "stream": "yes"}, "stream", id="stream a string"),
        pytest.param({"tools": "x"}, "tools: Input", id="tools a string"),
        pytest.param({"tools": [{"name": "a b"}]}, "tools.0.name", id="tool name"),
        pytest.param({"tools": [{"name": "a"}]}, "input_schema", id="tool without schema"),
        pytest.param({"tools": [tool("a"), tool("a")]}, "must be unique", id="doubled tool"),
        pytest.param({"system": [CACHED] * 5}, "Found 5", id="five cache points"),
    ],
)
async def test_a_malformed_request_is_a_400_that_names_the_place(
    client: httpx.AsyncClient, service: ModelService, changes: Mapping[str, Any], words: str
) -> None:
    """Nothing that the provider would refuse gets an answer here."""
    answer = await client.post("/v1/messages", headers=HEADERS, json=body(**changes))
    assert (answer.status_code, answer.json()["type"]) == (400, "error")
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert words in answer.json()["error"]["message"]
    assert [call.status for call in service.calls] == [400]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([USER, USER], id="user twice is one turn"),
        pytest.param([USER, ASKED, said(RESULT), USER], id="text after the results"),
        pytest.param([USER, ASKED, USER, said(RESULT)], id="text before the results"),
        pytest.param([USER, ASKED, said(RESULT | {"content": [CACHED]})], id="result as blocks"),
        pytest.param([USER, ASKED, said({**RESULT, "content": []})], id="result without content"),
        pytest.param([USER, {"role": "system", "content": "mind this"}], id="system entry"),
        pytest.param([said(CACHED, {"type": "image", "source": {}})], id="image"),
    ],
)
async def test_what_the_provider_takes_is_answered(
    client: httpx.AsyncClient, messages: list[Any]
) -> None:
    """Shapes that a client may send are not refused."""
    answer = await client.post("/v1/messages", headers=HEADERS, json=body(messages=messages))
    assert answer.status_code == 200, answer.text


async def test_roles_must_alternate_where_the_scenario_says_so() -> None:
    """Some compatible servers do not combine turns; a scenario can play one."""
    service = ModelService(scenario(roles="alternating"), KEY)
    transport = httpx.ASGITransport(app=service.asgi())
    async with httpx.AsyncClient(transport=transport, base_url="http://model") as client:
        answer = await client.post(
            "/v1/messages", headers=HEADERS, json=body(messages=[USER, USER])
        )
    assert answer.status_code == 400
    assert "roles must alternate" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("headers", "status", "kind"),
    [
        pytest.param({}, 401, "authentication_error", id="no key"),
        pytest.param({"x-api-key": "sk-other"}, 401, "authentication_error", id="wrong key"),
        pytest.param({"x-api-key": "sk-é"}, 401, "authentication_error", id="odd key"),
        pytest.param({"authorization": f"Basic {KEY}"}, 401, "authentication_error", id="basic"),
        pytest.param({"authorization": "Bearer no"}, 401, "authentication_error", id="bearer"),
        pytest.param({"x-api-key": KEY}, 400, "invalid_request_error", id="no version"),
    ],
)
async def test_headers_are_checked_before_the_body(
    client: httpx.AsyncClient,
    service: ModelService,
    headers: dict[str, str],
    status: int,
    kind: str,
) -> None:
    """Without the right key nothing is answered, and no key is ever echoed or recorded."""
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    answer = await client.post("/v1/messages", headers=sent, content=b"not even JSON")
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
    assert KEY not in answer.text + repr(service.calls)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
async def test_a_body_that_is_no_object_is_a_400(client: httpx.AsyncClient, content: bytes) -> None:
    """Bytes that are not a JSON object never reach the script."""
    answer = await client.post("/v1/messages", headers=HEADERS, content=content)
    assert answer.status_code == 400


async def test_a_body_over_the_limit_is_a_413(client: httpx.AsyncClient) -> None:
    """The provider takes 32 MB a request."""
    answer = await client.post("/v1/messages", headers=HEADERS, content=b" " * (MAX_BODY + 1))
    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/complete", 404),
        ("GET", "/v1/models/gpt-5", 404),
        ("GET", "/v1/messages", 405),
    ],
)
async def test_other_places_answer_in_the_provider_s_shape(
    client: httpx.AsyncClient, method: str, path: str, status: int
) -> None:
    """Every answer has the error body and a request id, so that clients can classify it."""
    answer = await client.request(method, path, headers=HEADERS)
    assert (answer.status_code, answer.json()["type"]) == (status, "error")
    assert answer.headers["request-id"] == answer.json()["request_id"]


async def test_an_unknown_model_is_a_404(client: httpx.AsyncClient, service: ModelService) -> None:
    """A misspelt model is named, and recorded as what was asked for."""
    answer = await client.post("/v1/messages", headers=HEADERS, json=body(model="claude-sonet"))
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")
    assert answer.json()["error"]["message"] == "model: claude-sonet"
    assert [(call.agent, call.model, call.error) for call in service.calls] == [
        ("security", "claude-sonet", "not_found_error")
    ]


async def test_text_that_is_not_unicode_survives(client: httpx.AsyncClient) -> None:
    """A lone surrogate in a prompt is odd, not fatal."""
    content = json.dumps(body(messages=[{"role": "user", "content": "\ud800"}])).encode()
    answer = await client.post("/v1/messages", headers=HEADERS, content=content)
    assert answer.status_code == 200
