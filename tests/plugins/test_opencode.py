"""`opencode.json` from a run's configuration (app/plugins/opencode.py)."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.agents.prompt_context import AddedContext
from app.agents.runtimes.direct.providers import WireFormat
from app.domain.runs import AgentName, Tier
from app.errors import PluginError
from app.plugins.configuration import RunConfiguration
from app.plugins.context import ConfigureContext
from app.plugins.facts import no_file
from app.plugins.lifecycle import PluginHost
from app.plugins.opencode import opencode_environment, opencode_json
from tests.plugins.factories import FACTS, Made, base, prompt_file

GOLDEN = Path(__file__).parent / "golden"
SECRETS = (
    "provider-key-1234567",
    "gateway-token-1234567",
    "docs-token-1234567",
    "variable-1234567",
)
REVIEWERS = (AgentName.SECURITY, AgentName.GENERAL, AgentName("acme_sql"))


@pytest.fixture
async def made(tmp_path: Path) -> RunConfiguration:
    def configure(context: ConfigureContext) -> None:
        context.provider(
            "acme",
            WireFormat.OPENAI,
            key=SecretStr("never-sent-1234567"),
            base_url="https://gateway.acme.test/v1/",
            headers={"cf-aig-authorization": SecretStr(SECRETS[1])},
            without=["authorization"],
        )
        context.request_header("acme", "cf-aig-metadata", '{"user":"1f"}')
        context.model_tier("acme", "acme", ["acme-large"])
        context.agent("acme_sql", prompt_file(tmp_path), chain="acme", permissions=["read_file"])
        context.mcp_server(
            "docs",
            agents=["acme_sql"],
            url="https://docs.acme.test/mcp",
            headers={"Authorization": SecretStr(SECRETS[2])},
        )
        context.mcp_server("local", agents=["acme_sql"], command=["acme-mcp", "--stdio"])
        context.environment("ACME_TOKEN", SecretStr(SECRETS[3]))
        context.context_window("acme-large", 64_000)

    return await PluginHost((base(SECRETS[0]), Made("acme", configure))).configured(FACTS, no_file)


@pytest.mark.parametrize(
    ("name", "agents"),
    [
        pytest.param("coordinator.opencode.json", (AgentName.COORDINATOR,), id="coordinator"),
        pytest.param("reviewers.opencode.json", REVIEWERS, id="reviewers"),
    ],
)
def test_golden(made: RunConfiguration, name: str, agents: tuple[AgentName, ...]) -> None:
    """The whole text. After a wanted change: `MERGEWARD_WRITE_GOLDEN=1`, then read it."""
    text = opencode_json(made, agents, Tier.FULL)
    file = GOLDEN / name
    if os.environ.get("MERGEWARD_WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_no_secret_is_in_the_file(made: RunConfiguration) -> None:
    """Every secret is a reference, and every reference has its variable."""
    text = opencode_json(made, (AgentName.COORDINATOR, *REVIEWERS), Tier.FULL)
    variables = opencode_environment(made)
    assert not any(secret in text for secret in (*SECRETS, "never-sent"))
    values = {value.get_secret_value() for value in variables.values()}
    assert set(SECRETS) <= values
    named = {part.partition("}")[0] for part in text.split("{env:")[1:]}
    assert named <= set(variables)
    assert named >= {"MERGEWARD_KEY_ANTHROPIC", "MERGEWARD_HEADER_ACME_CF_AIG_AUTHORIZATION"}
    assert "MERGEWARD_KEY_ACME" not in named


def test_nothing_of_the_change_is_in_the_file(made: RunConfiguration) -> None:
    """OpenCode expands `{file:…}` anywhere in its configuration: a title must not get there."""
    hostile = "{file:/etc/passwd} {env:HOME}"
    context = replace(
        made.context,
        title=hostile,
        body=hostile,
        author=hostile,
        added=(AddedContext("x", hostile, hostile),),
    )
    text = opencode_json(replace(made, context=context), REVIEWERS, Tier.FULL)
    assert "/etc/passwd" not in text
    assert text == opencode_json(made, REVIEWERS, Tier.FULL)


def test_everything_is_denied_but_reading(made: RunConfiguration) -> None:
    """Denied by default in each agent; an MCP server is offered to its own agents only."""
    document = json.loads(opencode_json(made, REVIEWERS, Tier.FULL))
    for agent in document["agent"].values():
        if "permission" in agent:
            assert next(iter(agent["permission"].items())) == ("*", "deny")
            assert not {"bash", "edit", "write", "task", "webfetch"} & set(agent["permission"])
    assert document["agent"]["review_acme_sql"]["permission"] == {
        "*": "deny",
        "read": "allow",
        "docs_*": "allow",
        "local_*": "allow",
    }
    assert "docs_*" not in document["agent"]["review_security"]["permission"]
    assert "mcp" not in json.loads(opencode_json(made, (AgentName.SECURITY,), Tier.FULL))


def test_an_agent_without_a_provider_is_named(made: RunConfiguration) -> None:
    """OpenCode would silently go to its own hosted models."""
    lonely = replace(made, providers=made.providers[1:])
    with pytest.raises(PluginError, match="security runs on the provider anthropic"):
        opencode_json(lonely, (AgentName.SECURITY,), Tier.FULL)


def test_no_value_goes_under_another_s_name(made: RunConfiguration) -> None:
    """`x-a` and `x_a` would be one variable, and one provider would get the other's secret."""
    first = replace(made.providers[0], headers={"x-a": "1", "x_a": "2"})
    with pytest.raises(PluginError, match="MERGEWARD_HEADER_ANTHROPIC_X_A"):
        opencode_environment(replace(made, providers=(first,)))
