"""What plugins give becomes one configuration, or an error that names them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from app.agents.runtimes.direct.providers import WireFormat
from app.control.routing import Chain, shipped_routing
from app.domain.runs import AgentName, Tier
from app.errors import ConfigurationError, PluginError
from app.plugins.assembler import assemble
from app.plugins.configuration import RunConfiguration
from app.plugins.context import ConfigureContext
from app.plugins.contributions import READING, Contributed
from app.plugins.facts import no_file
from app.plugins.lifecycle import PluginHost
from tests.plugins.factories import FACTS, Made, base, prompt_file

Give = Callable[[ConfigureContext], Any]


async def configured(*plugins: Made) -> RunConfiguration:
    return await PluginHost((base(), *plugins)).configured(FACTS, no_file)


def given_by(name: str, give: Give) -> Contributed:
    context = ConfigureContext(name, FACTS)
    give(context)
    return context.close()


async def test_contributions_are_laid_over_the_shipped_table(tmp_path: Path) -> None:
    """A plugin's agent, provider, chain, pin and window all reach the routing that models come
    from; what nobody touched stays shipped."""

    def configure(context: ConfigureContext) -> None:
        context.provider("acme", WireFormat.OPENAI, base_url="https://models.acme.test/v1")
        context.model_tier("acme", "acme", ["acme-large", "acme-small"])
        context.agent("acme_sql", prompt_file(tmp_path), chain="acme")
        context.pin("performance", ["claude-sonnet-4-5"])
        context.route("documentation", "acme")
        context.context_window("acme-large", 32_000)

    made = await configured(Made("acme", configure))
    routing = made.routing
    assert routing.chain_for(AgentName("acme_sql"), Tier.FULL).models == (
        "acme-large",
        "acme-small",
    )
    assert routing.chain_for(AgentName.DOCUMENTATION, Tier.LITE).provider == "acme"
    assert routing.chain_for(AgentName.PERFORMANCE, Tier.FULL) == Chain(
        "anthropic", ("claude-sonnet-4-5",)
    )
    shipped = shipped_routing("anthropic")
    for agent in (AgentName.SECURITY, AgentName.COORDINATOR):
        assert routing.chain_for(agent, Tier.FULL) == shipped.chain_for(agent, Tier.FULL)
    assert routing.context_window("acme-large") == 32_000
    assert [provider.name for provider in made.providers] == ["anthropic", "acme"]
    system = made.system_of(AgentName("acme_sql"))
    assert system is not None
    assert system.text.startswith("# Mergeward agent: acme_sql\n")
    assert system.version == "acme_sql@3+reviewer_shared@" + system.version.rpartition("@")[2]
    assert "see it with `read_file`" in system.text
    assert made.system_of(AgentName.SECURITY) is None


TWICE: dict[str, tuple[str, Give]] = {
    "agent": ("the agent acme_sql", lambda c: c.agent("acme_sql", Path(__file__).parent / "p.md")),
    "provider": ("the provider x", lambda c: c.provider("x", WireFormat.OPENAI)),
    "chain": ("the chain top", lambda c: c.model_tier("top", "anthropic", ["m"])),
    "route": ("the chain of the agent release", lambda c: c.route("release", "top")),
    "pin": ("the models of the agent release", lambda c: c.pin("release", ["m"])),
    "window": ("the context window of m", lambda c: c.context_window("m", 9_000)),
    "variable": ("the environment variable A_B", lambda c: c.environment("A_B", "1")),
    "header": (
        "the header x-a of the provider anthropic",
        lambda c: c.request_header("anthropic", "X-A", "1"),
    ),
    "template": ("the prompt's agents_md_template", lambda c: c.agents_md_template("short")),
    "server": (
        "the MCP server docs",
        lambda c: c.mcp_server("docs", agents=["security"], url="https://docs.acme.test"),
    ),
}


@pytest.mark.parametrize("what", TWICE)
async def test_two_that_give_the_same_are_both_named(what: str, tmp_path: Path) -> None:
    """A conflict is never settled silently: both plugins and the key are in the message."""
    key, give = TWICE[what]
    if what == "agent":
        file = prompt_file(tmp_path)
        give = lambda c: c.agent("acme_sql", file)  # noqa: E731
    await configured(Made("red", give))
    with pytest.raises(PluginError, match="red and blue both give") as caught:
        await configured(Made("red", give), Made("blue", give))
    assert key in str(caught.value)
    with pytest.raises(PluginError, match="given twice"):
        await configured(Made("red", lambda c: (give(c), give(c))))  # type: ignore[arg-type]  # a pair of calls


MISTAKES: dict[str, tuple[Give, str]] = {
    "unknown-chain": (lambda c: c.route("security", "nowhere"), "chain nowhere, which nobody"),
    "unknown-provider": (lambda c: c.model_tier("x", "nobody", ["m"]), "provider nobody, which"),
    "pinned-to-unknown": (lambda c: c.pin("security", ["m"], "nobody"), "provider nobody, which"),
    "header-to-unknown": (lambda c: c.request_header("nobody", "x-a", "1"), "provider nobody"),
    "unknown-agent": (lambda c: c.switch_off("securty"), "agent securty, which nobody registers"),
    "section-for-unknown": (
        lambda c: c.prompt_section("t", "x", agents=["nobody"]),
        "agent nobody, which",
    ),
    "shipped-name": (lambda c: c.agent("security", Path("x.md")), "security is a shipped agent"),
    "no-prompt": (lambda c: c.agent("mine", Path("/nowhere/x.md")), "x.md cannot be read"),
    "bad-name": (lambda c: c.route("Security", "top"), "no name of an agent"),
    "no-coordinator": (lambda c: c.switch_off("coordinator"), "cannot be switched off"),
    "wider": (lambda c: c.restrict("security", ["bash"]), "no agent can be permitted bash"),
    "key-in-url": (
        lambda c: c.provider("x", WireFormat.OPENAI, base_url="https://u:p@x.test"),
        "must not carry credentials",
    ),
    "reference-in-url": (
        lambda c: c.provider("x", WireFormat.OPENAI, base_url="https://x.test/{env:HOME}"),
        "must start with https",
    ),
    "split-header": (lambda c: c.request_header("anthropic", "x-a", "1\r\nx: 2"), "line end"),
    "reference-in-command": (
        lambda c: c.mcp_server("m", agents=["security"], command=["x", "{file:/etc/passwd}"]),
        "must not refer",
    ),
    "no-transport": (lambda c: c.mcp_server("m", agents=["security"]), "either a url or a command"),
    "tiny-window": (lambda c: c.context_window("m", 10), "too small"),
    "empty-chain": (lambda c: c.model_tier("x", "anthropic", []), "has no model"),
}


@pytest.mark.parametrize("what", MISTAKES)
async def test_a_mistake_ends_the_run_and_names_the_plugin(what: str) -> None:
    """Nothing that is wrong is dropped: the run ends, saying whose fault it is."""
    give, words = MISTAKES[what]
    with pytest.raises(PluginError, match="The plugin acme") as caught:
        await configured(Made("acme", give))
    assert words in str(caught.value)


async def test_without_a_provider_the_variables_are_named() -> None:
    """The remedy is in the message."""
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY") as caught:
        await PluginHost(()).configured(FACTS, no_file)
    assert "MERGEWARD_MODEL_BASE_URL" in str(caught.value)


async def test_without_a_description_no_run_begins() -> None:
    """Agents that are told nothing of a change can't review it."""

    def configure(context: ConfigureContext) -> None:
        context.provider("anthropic", WireFormat.ANTHROPIC, key=SecretStr("k" * 20))
        context.shipped_routing(shipped_routing("anthropic"))

    with pytest.raises(PluginError, match="No plugin describes the change"):
        await PluginHost((Made("models", configure),)).configured(FACTS, no_file)


async def test_a_stripped_header_cannot_come_back() -> None:
    """What one plugin's provider never gets, no other plugin sends it."""

    def gateway(context: ConfigureContext) -> None:
        context.provider("gw", WireFormat.OPENAI, without=["Authorization"])

    def other(context: ConfigureContext) -> None:
        context.request_header("gw", "AUTHORIZATION", "Bearer mine")

    with pytest.raises(PluginError, match=r"The plugin other .* never gets it"):
        await configured(Made("gateway", gateway), Made("other", other))


@given(st.lists(st.frozensets(st.sampled_from(sorted(READING))), max_size=5))
def test_restrictions_only_narrow(sets: list[frozenset[str]]) -> None:
    """Whatever plugins permit, in any order: an agent may do what all of them allow, no more."""
    plugins = [
        given_by(f"p{n}", lambda c, allowed=allowed: c.restrict("security", allowed))  # type: ignore[misc]  # a default argument binds
        for n, allowed in enumerate(sets)
    ]
    context = ConfigureContext("base", FACTS)
    base().configure(context)
    made = assemble([context.close(), *plugins])
    assert made.allowed(AgentName.SECURITY) == READING.intersection(*sets)
    assert made.allowed(AgentName.GENERAL) == READING


async def test_the_configuration_cannot_be_changed() -> None:
    """Nobody can turn a run's configuration into another while it runs."""
    made = await configured(Made("acme", lambda c: c.environment("A", "1")))
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.routing = shipped_routing("openai")  # type: ignore[misc]  # that is the test
    for mapping in (made.agents, made.headers, made.permissions, made.environment):
        with pytest.raises(TypeError):
            mapping["x"] = None  # type: ignore[index]  # that is the test
    with pytest.raises(TypeError):
        made.routing.chains["top"] = Chain("x", ("y",))  # type: ignore[index]  # that is the test


async def test_nothing_is_given_after_configure() -> None:
    """A context that a plugin kept is closed."""
    kept: list[ConfigureContext] = []
    await configured(Made("acme", kept.append))
    with pytest.raises(PluginError, match="configured already"):
        kept[0].environment("LATE", "1")
