"""`mergeward agents`: who reviews what, as it is configured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.domain.policy import Policy
from app.domain.runs import SHIPPED_AGENTS, AgentName, Tier
from app.plugins.codex import Codex, Rule
from app.plugins.context import ConfigureContext
from app.plugins.contributions import RunWhen
from app.plugins.facts import no_file
from app.plugins.lifecycle import PluginHost
from app.review.plan import REVIEWERS
from app.review.roster import roster
from tests.cli.cli_stage import mergeward
from tests.plugins.factories import FACTS, Made, base, prompt_file

KEY = {"ANTHROPIC_API_KEY": "k"}


def asked(*arguments: str, **environment: str) -> list[dict[str, Any]]:
    result = mergeward("agents", "--json", *arguments, variables=environment)
    assert (result.returncode, result.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def test_every_agent_is_there_with_what_it_runs_on() -> None:
    """By tier, with a failback where the family has one; the coordinator's best model reads full
    reviews only."""
    found = {row["agent"]: row for row in asked("--provider", "anthropic")}
    assert found.keys() == {agent.value for agent in SHIPPED_AGENTS}
    for tier, reviewers in REVIEWERS.items():
        for agent in reviewers:
            assert len(found[agent.value]["models"][tier.value]) >= 2
    coordinator = found["coordinator"]["models"]
    assert coordinator["lite"] == coordinator["trivial"] != coordinator["full"]
    assert all(1_000 < row["prompt_tokens"] < 10_000 for row in found.values())
    assert found["security"]["prompt"].startswith("security@")


@pytest.mark.parametrize(
    ("environment", "first"),
    [
        pytest.param({"ANTHROPIC_API_KEY": "k"}, "anthropic/", id="anthropic"),
        pytest.param({"OPENAI_API_KEY": "k"}, "openai/", id="openai"),
        pytest.param(
            {"MERGEWARD_MODEL_BASE_URL": "http://127.0.0.1:1", "MERGEWARD_MODEL": "own"},
            "anthropic/own",
            id="one-model-for-all",
        ),
        pytest.param(
            {"MERGEWARD_GATEWAY_URL": "https://gateway.example", "MERGEWARD_MODEL": "own"},
            "anthropic/own",
            id="behind-a-gateway",
        ),
    ],
)
def test_settings_decide(environment: dict[str, str], first: str) -> None:
    """What would run with the settings of now."""
    for row in asked(**environment):
        for chain in row["models"].values():
            assert chain[0].startswith(first)


def test_a_policy_decides(tmp_path: Path) -> None:
    """Reviewers it switches off are gone, models it names are first and only."""
    file = tmp_path / "policy.yml"
    file.write_text("reviewers: {release: false}\nmodels: {security: claude-opus-4-6}\n")
    found = {row["agent"]: row for row in asked("--policy", str(file), **KEY)}
    assert "release" not in found
    assert found["security"]["models"] == {"full": ["anthropic/claude-opus-4-6"]}


def test_a_person_reads_a_table() -> None:
    """A row for each agent and chain; tiers with the same chain share it, and conditions follow."""
    result = mergeward("agents", variables=KEY)
    assert (result.returncode, result.stderr) == (0, "")
    head, *lines = result.stdout.splitlines()
    assert head.split() == ["agent", "tiers", "models", "prompt", "tokens"]
    rows = [line for line in lines[: lines.index("")] if not line.startswith(" ")]
    assert {row.split()[0] for row in rows} == {agent.value for agent in SHIPPED_AGENTS}
    place = head.index("models")
    assert all(line[place - 1] == " " and line[place] != " " for line in lines[: lines.index("")])
    assert "trivial, lite  anthropic/claude-sonnet-4-6 > claude-" in result.stdout
    assert "compliance starts if there is a codex.\n" in result.stdout


def test_nothing_configured_is_said() -> None:
    """One line names the variables that are missing; shown is what ships."""
    result = mergeward("agents")
    assert (result.returncode, result.stderr.count("\n")) == (0, 1)
    assert "ANTHROPIC_API_KEY" in result.stderr
    assert "anthropic/claude" in result.stdout


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        pytest.param({"MERGEWARD_PLUGINS_OFF": "nobody"}, "names nobody", id="plugin"),
        pytest.param({"MERGEWARD_MODEL_WIRE": "smoke"}, "MERGEWARD_MODEL_WIRE", id="setting"),
    ],
)
def test_settings_that_no_review_could_run_with(variables: dict[str, str], words: str) -> None:
    """2, and what to change."""
    result = mergeward("agents", variables={**KEY, **variables})
    assert words in result.stderr
    assert (result.returncode, result.stdout) == (2, "")


async def test_plugins_take_part(tmp_path: Path) -> None:
    """Their reviewers are shown with their own prompt and when they start; who is switched off by
    one is not shown, and a codex is told apart from none."""

    def configure(context: ConfigureContext) -> None:
        when = RunWhen(tiers=frozenset({Tier.LITE, Tier.FULL}), paths=("*.sql",))
        context.agent("acme_sql", prompt_file(tmp_path), when=when)
        context.switch_off("release")
        context.codex(Codex((Rule(id="API-7", title="Page sizes"),)))

    host = PluginHost((base(), Made("acme", configure)))
    configuration = await host.configured(FACTS, no_file)
    members = roster(Policy(), configuration.routing, configuration)
    found = {member.agent: member for member in members}
    sql = found[AgentName("acme_sql")]
    assert sql.prompt.startswith("acme_sql@3+reviewer_shared@")
    assert [tier for tier, _ in sql.models] == [Tier.LITE, Tier.FULL]
    assert sql.only_if == "the change touches *.sql"
    assert AgentName.RELEASE not in found
    assert found[AgentName.COMPLIANCE].only_if == ""


def test_a_wrong_policy_is_named(tmp_path: Path) -> None:
    """As `policy check` does."""
    file = tmp_path / "policy.yml"
    file.write_text("mood: live\n")
    result = mergeward("agents", "--policy", str(file))
    assert (result.returncode, result.stdout) == (2, "")
    assert "line 1: mood: there is no such key" in result.stderr
