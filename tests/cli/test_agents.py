"""`mergeward agents`: who reviews what, as it is configured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.domain.runs import SHIPPED_AGENTS
from app.review.plan import REVIEWERS
from tests.cli.cli_stage import mergeward


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
        pytest.param({}, "anthropic/", id="nothing-configured"),
        pytest.param({"ANTHROPIC_API_KEY": "k"}, "anthropic/", id="anthropic"),
        pytest.param({"OPENAI_API_KEY": "k"}, "openai/", id="openai"),
        pytest.param(
            {"MERGEWARD_MODEL_BASE_URL": "http://127.0.0.1:1", "MERGEWARD_MODEL": "own"},
            "anthropic/own",
            id="one-model-for-all",
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
    found = {row["agent"]: row for row in asked("--policy", str(file))}
    assert "release" not in found
    assert found["security"]["models"] == {"full": ["anthropic/claude-opus-4-6"]}


def test_a_person_reads_it() -> None:
    """Tiers with the same chain share a line, and conditions are said."""
    result = mergeward("agents")
    assert "  trivial, lite   anthropic/claude-sonnet-4-6 > anthropic/" in result.stdout
    assert "starts if there is a codex" in result.stdout


def test_a_wrong_policy_is_named(tmp_path: Path) -> None:
    """As `policy check` does."""
    file = tmp_path / "policy.yml"
    file.write_text("mood: live\n")
    result = mergeward("agents", "--policy", str(file))
    assert (result.returncode, result.stdout) == (2, "")
    assert "line 1: mood: there is no such key" in result.stderr
