"""What a provider is sent beside the prompt (app/agents/runtimes/direct/providers.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import httpx2
import pytest

from app.agents.port import AgentTask, ModelRef
from app.agents.runtimes.direct import DirectRuntime, ProviderSettings, WireFormat
from app.domain.runs import AgentName

KEY = "a-provider-s-key"
GATEWAY = {"cf-aig-authorization": "Bearer gateway", "Host": "elsewhere.test"}
STRIPPED = frozenset({"authorization", "cf-access-token", "host"})


async def sent_by(
    settings: ProviderSettings, headers: Mapping[str, Mapping[str, str]] | None = None
) -> Mapping[str, str]:
    """The headers of the one request that a session makes."""
    seen: list[Mapping[str, str]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers)
        return httpx2.Response(400, json={"error": {"type": "x", "message": "enough"}})

    client: Callable[[], httpx2.AsyncClient] = lambda: httpx2.AsyncClient(  # noqa: E731
        transport=httpx2.MockTransport(answer)
    )
    async with DirectRuntime([settings], http_client=client) as runtime:
        await runtime.run(
            AgentTask(
                agent=AgentName.SECURITY,
                system="# Mergeward agent: security",
                prompt="please",
                models=(ModelRef(settings.name, "m"),),
                headers=headers or {},
            )
        )
    (only,) = seen
    return only


@pytest.mark.parametrize("wire", list(WireFormat))
async def test_stripped_headers_never_leave(wire: WireFormat) -> None:
    """Whoever would add them, the SDK by itself or the configuration; the rest goes as it was."""
    settings = ProviderSettings(
        "p", wire, KEY, "http://model.test", {**GATEWAY, "CF-Access-Token": "t"}, STRIPPED
    )
    headers = await sent_by(settings)
    assert headers["host"] == "model.test"
    assert headers["cf-aig-authorization"] == "Bearer gateway"
    assert not STRIPPED & {"authorization", "cf-access-token"} & set(headers)


@pytest.mark.parametrize("wire", list(WireFormat))
async def test_without_a_key_none_is_sent(wire: WireFormat) -> None:
    """A gateway that holds the keys gets no empty or made-up one."""
    headers = await sent_by(ProviderSettings("p", wire, "", "http://model.test"))
    assert "x-api-key" not in headers
    assert "authorization" not in headers


@pytest.mark.parametrize(
    ("wire", "name", "value"),
    [
        pytest.param(WireFormat.ANTHROPIC, "x-api-key", KEY, id="anthropic"),
        pytest.param(WireFormat.OPENAI, "authorization", f"Bearer {KEY}", id="openai"),
    ],
)
async def test_the_key_goes_by_its_own_header(wire: WireFormat, name: str, value: str) -> None:
    """Each wire format has one place for the key."""
    headers = await sent_by(ProviderSettings("p", wire, KEY, "http://model.test"))
    assert headers[name] == value
    assert sum(KEY in sent for sent in headers.values()) == 1


@pytest.mark.parametrize("wire", list(WireFormat))
async def test_a_task_s_headers_go_to_their_provider_only(wire: WireFormat) -> None:
    """What tells a gateway whose request it is reaches nobody else."""
    settings = ProviderSettings("p", wire, KEY, "http://model.test")
    mine = {"p": {"cf-aig-metadata": '{"u":"1"}'}, "q": {"x-other": "secret"}}
    headers = await sent_by(settings, mine)
    assert headers["cf-aig-metadata"] == '{"u":"1"}'
    assert "x-other" not in headers
