"""What models are told: every file in form, every render as reviewed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.agents.prompts import (
    REVIEWERS,
    TOOL_NAMES,
    available_agents,
    fill,
    load_prompt,
    note,
    prompts_directory,
    render_system,
    tool_text,
)
from app.domain.runs import SHIPPED_AGENTS, AgentName
from app.errors import ConfigurationError

FILES = sorted(path.stem for path in prompts_directory().glob("*.md"))
AGENTS = sorted(available_agents())


def test_the_agents_of_this_release_have_prompts() -> None:
    """Coordinator, fixer and the eight reviewers."""
    assert set(AGENTS) == set(SHIPPED_AGENTS)


@pytest.mark.parametrize("name", FILES)
def test_front_matter(name: str) -> None:
    """Each file has an id of its own name, a version, and names the values it is filled with."""
    prompt = load_prompt(name)
    assert prompt.id == name.lower().replace(".", "_")
    assert prompt.version >= 1
    holes = set(re.findall(r"\{\{([a-z_]+)\}\}", prompt.text)) - set(TOOL_NAMES)
    if name.endswith(".user") or name in ("notes", "shared_context"):
        assert holes == set(prompt.inputs)
    else:
        assert holes == set()


@pytest.mark.parametrize("agent", AGENTS)
def test_a_system_prompt(agent: AgentName) -> None:
    """First line by contract; no hole left; says what is data; the version names its files."""
    prompt = render_system(agent)
    assert prompt.text.startswith(f"# Mergeward agent: {agent}\n")
    assert "{{" not in prompt.text
    assert "never an instruction" in prompt.text
    assert prompt.version.startswith(f"{agent}@")
    assert ("reviewer_shared@" in prompt.version) == (agent in REVIEWERS)


@pytest.mark.parametrize("agent", AGENTS)
def test_no_verdict_is_asked_for(agent: AgentName) -> None:
    """Code computes the verdict: no prompt offers words for one."""
    text = render_system(agent).text.lower()
    for word in ("approved", "lgtm", "request changes", "<verdict", "minor_issues"):
        assert word not in text


@pytest.mark.parametrize("agent", AGENTS)
def test_other_tool_names(agent: AgentName) -> None:
    """Prompts name capabilities; a runtime with other names gets its own."""
    other = {name: f"mw_{name}" for name in TOOL_NAMES}
    text = render_system(agent, other).text
    assert "`mw_read_file`" in text
    assert "`read_file`" not in text


def test_every_tool_is_described() -> None:
    """Each tool has a text, and notes are filled or refuse."""
    assert all(tool_text(name) for name in TOOL_NAMES)
    assert "because" in note("malformed", problem="because")
    with pytest.raises(ConfigurationError, match="no value"):
        note("malformed")
    with pytest.raises(ConfigurationError, match="no section"):
        tool_text("rm")
    with pytest.raises(ConfigurationError, match="no prompt"):
        load_prompt("nobody")


def test_a_value_is_not_looked_at_again() -> None:
    """What a stranger writes cannot fill another hole."""
    assert fill("{{one}} {{two}}", {"one": "{{two}}", "two": "2"}) == "{{two}} 2"


def test_no_prompt_text_in_python() -> None:
    """Words for models live in `prompts/`: no module of the agents has a paragraph of them."""
    for path in (Path(__file__).parents[2] / "app/agents").rglob("*.py"):
        assert "You are " not in path.read_text(encoding="utf-8"), path


def test_importing_agents_costs_little() -> None:
    """No model library is loaded until a run starts."""
    code = (
        "import sys, app.agents.scheduler, app.agents.tools, app.agents.runtimes.direct;"
        "print([m for m in ('pydantic_ai', 'anthropic', 'openai', 'genai_prices', 'httpx2')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == "[]"
