"""The built-in plugin `reviewer-config` (app/plugins/builtin/reviewer_config.py)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import httpx
import pytest
from pydantic import SecretStr

from app.control.routing import shipped_routing
from app.domain.runs import AgentName, Tier
from app.plugins.builtin.reviewer_config import (
    RemoteOptions,
    ReviewerConfigPlugin,
    parse_overrides,
)
from app.plugins.configuration import RunConfiguration
from app.plugins.facts import no_file
from app.plugins.fetch import Fetcher
from app.plugins.lifecycle import PluginHost
from tests.plugins.factories import FACTS, base

URL = "https://config.acme.test/reviewers.json"


@dataclass
class Remote:
    """A server of one document, and the plugin that asks it."""

    answer: httpx.Response
    seen: list[str | None] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        async def resolve(host: str, port: int) -> tuple[str, ...]:
            return ("93.184.216.34",)

        def handle(request: httpx.Request) -> httpx.Response:
            self.seen.append(request.headers.get("authorization"))
            return self.answer

        fetcher = Fetcher(resolve=resolve, transport=httpx.MockTransport(handle))
        options = RemoteOptions(URL, SecretStr("a-token"))
        self.plugin = ReviewerConfigPlugin(options, fetcher)
        self.plugin._overrides.monotonic = lambda: self.now

    async def configured(self) -> RunConfiguration:
        self.now += 60
        return await PluginHost((base(), self.plugin)).configured(FACTS, no_file)


def says(**reviewers: object) -> httpx.Response:
    return httpx.Response(200, content=json.dumps({"reviewers": reviewers}).encode())


async def test_overrides_reach_the_run() -> None:
    """Models by reviewer, and who is off; the token goes to the document's host."""
    remote = Remote(says(security={"models": ["m1", "m2"]}, release={"enabled": False}))
    made = await remote.configured()
    assert made.routing.chain_for(AgentName.SECURITY, Tier.FULL).models == ("m1", "m2")
    assert made.switched_off == {AgentName.RELEASE}
    assert remote.seen == ["Bearer a-token"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(httpx.Response(500), id="down"),
        pytest.param(httpx.Response(200, content=b"<html>"), id="no-json"),
        pytest.param(httpx.Response(200, content=b'{"reviewers": 3}'), id="wrong-type"),
        pytest.param(httpx.Response(200, content=b'{"reviewer": {}}'), id="unknown-key"),
        pytest.param(says(security={"models": ["a b"]}), id="no-model"),
        pytest.param(says(coordinator={"enabled": False}), id="needed"),
        pytest.param(says(**{"../x": {}}), id="no-name"),
    ],
)
async def test_a_bad_answer_changes_nothing(answer: httpx.Response) -> None:
    """The last good document holds; before there is one, the operator's settings do."""
    remote = Remote(answer)
    shipped = shipped_routing("anthropic").chain_for(AgentName.SECURITY, Tier.FULL)
    assert (await remote.configured()).routing.chain_for(AgentName.SECURITY, Tier.FULL) == shipped
    remote.answer = says(security={"models": ["good"]})
    await remote.configured()
    remote.answer = answer
    again = await remote.configured()
    assert again.routing.chain_for(AgentName.SECURITY, Tier.FULL).models == ("good",)
    assert len(remote.seen) == 3


async def test_what_this_process_does_not_know_is_no_error() -> None:
    """One document serves many processes: what only another one knows ends no run here."""
    remote = Remote(
        says(
            acme_sql={"models": ["m"], "enabled": False},
            security={"models": ["m"], "provider": "elsewhere"},
        )
    )
    made = await remote.configured()
    assert AgentName.SECURITY not in made.routing.pinned
    shipped = shipped_routing("anthropic").chain_for(AgentName.SECURITY, Tier.FULL)
    assert made.routing.chain_for(AgentName.SECURITY, Tier.FULL) == shipped


def test_the_document() -> None:
    """Everything has a default: an empty document says nothing."""
    assert parse_overrides(b"{}").reviewers == {}
