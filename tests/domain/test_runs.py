"""The words of a run (app/domain/runs.py)."""

from __future__ import annotations

import copy
import pickle

import pytest
from pydantic import TypeAdapter, ValidationError

from app.domain.runs import SHIPPED_AGENTS, AgentName


def test_shipped_agents_are_the_class_s_names() -> None:
    """Each shipped name is an attribute, once, and equal to its text."""
    assert len(set(SHIPPED_AGENTS)) == len(SHIPPED_AGENTS) == 10
    assert all(getattr(AgentName, agent.value.upper()) == agent.value for agent in SHIPPED_AGENTS)


@pytest.mark.parametrize("name", ["security", "acme_sql", "x", "a1_2"])
def test_a_name_survives_everything_it_is_kept_in(name: str) -> None:
    """JSON, pickle and copies give back an equal name of the same type."""
    agent = AgentName(name)
    adapter = TypeAdapter(AgentName)
    kept = adapter.validate_python(adapter.dump_python(agent, mode="json"))
    for same in (kept, copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):  # noqa: S301
        assert (same, type(same)) == (agent, AgentName)
    assert type(agent.value) is str


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        pytest.param("Security", id="upper-case"),
        pytest.param("../fixer", id="path"),
        pytest.param("a-b", id="hyphen"),
        pytest.param("1a", id="digit-first"),
        pytest.param("a\n", id="line-end"),
        pytest.param("a" * 41, id="too-long"),
        pytest.param("sécurité", id="not-ascii"),
    ],
)
def test_what_is_no_name_is_refused(name: str) -> None:
    """A name becomes a key, a column and part of a file's name, so its form is checked at once."""
    with pytest.raises(ValueError, match="no name of an agent"):
        AgentName(name)
    with pytest.raises(ValidationError):
        TypeAdapter(AgentName).validate_python(name)
