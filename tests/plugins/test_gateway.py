"""The built-in plugin `gateway` (app/plugins/builtin/gateway.py)."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from app.agents.port import AgentTask, ModelRef
from app.agents.runtimes.direct import DirectRuntime, WireFormat
from app.control.routing import shipped_routing
from app.domain.runs import AgentName, Tier
from app.errors import ConfigurationError, PluginError
from app.plugins.builtin.gateway import anonymous_id, read_models
from app.plugins.configuration import RunConfiguration
from app.plugins.configured import plugins_of
from app.plugins.facts import RunFacts, no_file
from app.plugins.runtimes import Runtimes
from app.settings import load_settings
from tests.plugins.factories import FACTS

GATEWAY: dict[str, Any] = {
    "gateway_url": "https://gateway.test/v1/acme/reviews",
    "gateway_token": "the-gateway-token",
    "anthropic_api_key": "a-provider-s-key",
    "openai_api_key": "another-provider-s-key",
}
KEY = SecretStr("a key of the operator")


async def made(facts: RunFacts = FACTS, **settings: Any) -> RunConfiguration:
    host = plugins_of(load_settings(**{**GATEWAY, **settings}), ())
    return await host.configured(facts, no_file)


async def test_every_provider_is_behind_the_gateway() -> None:
    """By its address, with its token; the providers' own keys never reach it."""
    configuration = await made()
    assert [(one.name, one.wire, one.base_url) for one in configuration.providers] == [
        ("anthropic", WireFormat.ANTHROPIC, "https://gateway.test/v1/acme/reviews/anthropic"),
        ("openai", WireFormat.OPENAI, "https://gateway.test/v1/acme/reviews/openai"),
    ]
    for provider in configuration.providers:
        assert provider.without == {"authorization", "cf-access-token", "host"}
        assert provider.api_key == ""
        sent = {**provider.headers, **configuration.headers[provider.name]}
        assert sent["cf-aig-authorization"] == "Bearer the-gateway-token"
        assert not any("provider-s-key" in value for value in sent.values())


async def test_a_user_is_an_id_and_never_a_login() -> None:
    """The same for the same user in every run, another for another, and nothing of the name."""
    told = []
    for author in ("alice", "ALICE", "bob"):
        configuration = await made(replace(FACTS, author=author))
        sent = configuration.headers["anthropic"]["cf-aig-metadata"]
        assert author.lower() not in sent.lower()
        told.append(json.loads(sent)["user"])
    assert told[0] == told[1] != told[2]


@given(st.text(min_size=1), st.text(min_size=1))
def test_ids(login: str, key: str) -> None:
    """32 hex digits for any login; another key makes another id."""
    mine = anonymous_id(KEY, login)
    assert len(mine) == 32
    assert set(mine) <= set("0123456789abcdef")
    try:
        other = anonymous_id(SecretStr("other:" + key), login)
    except UnicodeEncodeError:
        return
    assert other != mine


async def test_no_key_is_guessed() -> None:
    """Without a token and a key the ids last as long as the process: they can't be looked up."""
    first, second = [
        (await made(gateway_token=None)).headers["anthropic"]["cf-aig-metadata"] for _ in range(2)
    ]
    assert json.loads(first)["user"] != json.loads(second)["user"]


async def test_the_gateway_s_own_tiers(tmp_path: Path) -> None:
    """Tiers, agents and windows of its file are laid over the shipped table."""
    file = tmp_path / "models.toml"
    file.write_text(
        '[tiers.top]\nprovider = "openai"\nmodels = ["gpt-5.4", "gpt-5.4-mini"]\n'
        '[tiers.light]\nprovider = "anthropic"\nmodels = ["small"]\n'
        '[agents]\ndocumentation = "light"\n[windows]\nsmall = 64000\n'
    )
    routing = (await made(gateway_models=file)).routing
    assert routing.chain_for(AgentName.COORDINATOR, Tier.FULL).models == (
        "gpt-5.4",
        "gpt-5.4-mini",
    )
    assert routing.chain_for(AgentName.DOCUMENTATION, Tier.LITE).models == ("small",)
    assert routing.context_window("small") == 64_000
    shipped = shipped_routing("anthropic")
    assert routing.chain_for(AgentName.SECURITY, Tier.FULL) == shipped.chain_for(
        AgentName.SECURITY, Tier.FULL
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("tiers = 3", "tiers", id="type"),
        pytest.param("[tiers.top]\nprovider = 'acme'\nmodels = ['m']", "tiers.top.prov", id="who"),
        pytest.param(
            "[tiers.top]\nprovider = 'openai'\nmodels = []", "tiers.top.models", id="none"
        ),
        pytest.param("[windows]\nm = 12", "windows.m", id="window"),
        pytest.param("extra = 1", "extra", id="unknown-key"),
        pytest.param("[tiers", "models.toml", id="no-toml"),
    ],
)
def test_a_bad_file_names_file_and_key(text: str, words: str, tmp_path: Path) -> None:
    """At the start of the process, not in the middle of a review."""
    file = tmp_path / "models.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match="MERGEWARD_GATEWAY_MODELS") as said:
        read_models(file)
    assert words in str(said.value)


async def test_a_tier_that_nobody_gives_names_the_plugin(tmp_path: Path) -> None:
    """Agents on a tier that does not exist end the run, not the quality of the review."""
    file = tmp_path / "models.toml"
    file.write_text('[agents]\ndocumentation = "tiny"\n')
    with pytest.raises(PluginError, match=r"plugin gateway puts .* on the chain tiny"):
        await made(gateway_models=file)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_what_leaves_for_the_gateway(provider: str) -> None:
    """Over the runtime as a service has it: address, token, metadata, and nothing that is stripped
    or anybody's key."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(400, json={"error": {"type": "x", "message": "enough"}})

    def client() -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))

    configuration = await made()
    async with Runtimes(partial(DirectRuntime, http_client=client)) as runtimes:
        runtime = await runtimes.for_run(configuration)
        await runtime.run(
            AgentTask(AgentName.SECURITY, "# s", "p", (ModelRef(provider, "m"),), key="k")
        )
    [request] = seen
    assert str(request.url).startswith(f"https://gateway.test/v1/acme/reviews/{provider}/")
    sent = request.headers
    assert sent["cf-aig-authorization"] == "Bearer the-gateway-token"
    assert set(json.loads(sent["cf-aig-metadata"])) == {"app", "kind", "user"}
    assert sent["host"] == "gateway.test"
    assert not {"authorization", "x-api-key", "cf-access-token"} & set(sent)
    assert "provider-s-key" not in repr(sent.raw)
