"""Loads what models are told. Every word of it is in `prompts/`; this file only puts it together.

In a checkout the files stand beside `app`, in an installed wheel inside it; both are found here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from app.domain.runs import SHIPPED_AGENTS, AgentName
from app.errors import ConfigurationError

_APP = Path(__file__).resolve().parent.parent
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")
_SECTION = re.compile(r"^## ([a-z_.]+)\n", re.MULTILINE)

TOOL_NAMES: Mapping[str, str] = {
    name: name
    for name in (
        "read_patch",
        "read_file",
        "grep",
        "glob",
        "list",
        "spawn_reviewers",
        "edit_file",
        "write_file",
    )
}
"""The capabilities that prompts name, by the names of the tools that we supply ourselves."""

REVIEWERS = frozenset(SHIPPED_AGENTS) - {AgentName.COORDINATOR, AgentName.FIXER}


@dataclass(frozen=True, slots=True)
class PromptFile:
    """One file of `prompts/`: its front matter and its text."""

    id: str
    version: int
    inputs: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """A rendered system prompt. `version` names each file in it: `security@1+reviewer_shared@2`."""

    text: str
    version: str


def prompts_directory() -> Path:
    """Where the prompt files are. Raises ConfigurationError when the installation lacks them."""
    for directory in (_APP / "prompts", _APP.parent / "prompts"):
        if (directory / "REVIEWER_SHARED.md").is_file():
            return directory
    raise ConfigurationError(
        f"the prompt files are missing: neither {_APP / 'prompts'} nor {_APP.parent / 'prompts'}"
        " holds REVIEWER_SHARED.md; reinstall mergeward"
    )


def available_agents() -> frozenset[AgentName]:
    """The agents that have a prompt."""
    directory = prompts_directory()
    return frozenset(agent for agent in SHIPPED_AGENTS if (directory / f"{agent}.md").is_file())


@cache
def load_prompt(name: str) -> PromptFile:
    """Read `prompts/<name>.md`. Raises ConfigurationError when missing or without front matter."""
    path = prompts_directory() / f"{name}.md"
    if not path.is_file():
        raise ConfigurationError(f"there is no prompt {path.name} in {path.parent}")
    return parse_prompt(path.read_text(encoding="utf-8"), str(path))


def parse_prompt(content: str, path: str) -> PromptFile:
    """A prompt file from its text; `path` names it in errors. Raises ConfigurationError."""
    matter = _FRONT_MATTER.match(content)
    if matter is None:
        raise ConfigurationError(f"{path} does not begin with front matter (id, version, inputs)")
    try:
        head = yaml.safe_load(matter.group(1))
        return PromptFile(
            id=str(head["id"]),
            version=int(head["version"]),
            inputs=tuple(str(name) for name in head["inputs"]),
            text=content[matter.end() :].strip() + "\n",
        )
    except (KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise ConfigurationError(f"the front matter of {path} is not usable: {error}") from error


@cache
def _render_system(agent: AgentName, tools: tuple[tuple[str, str], ...]) -> SystemPrompt:
    files = [load_prompt(agent.value)]
    if agent in REVIEWERS:
        files.insert(0, load_prompt("REVIEWER_SHARED"))
    return _joined(agent, files, tools)


def render_reviewer(
    agent: AgentName, own: PromptFile, tool_names: Mapping[str, str] = TOOL_NAMES
) -> SystemPrompt:
    """The system prompt of a reviewer whose own part comes from elsewhere (a plugin): the rules
    that all reviewers share come first. Raises ConfigurationError for an unknown placeholder."""
    files = [load_prompt("REVIEWER_SHARED"), own]
    return _joined(agent, files, tuple(sorted(tool_names.items())))


def _joined(
    agent: AgentName, files: Sequence[PromptFile], tools: tuple[tuple[str, str], ...]
) -> SystemPrompt:
    bodies = "\n".join(file.text for file in files)
    text = f"# Mergeward agent: {agent}\n\n{fill(bodies, dict(tools))}"
    version = "+".join(f"{file.id}@{file.version}" for file in reversed(files))
    return SystemPrompt(text, version)


def render_system(agent: AgentName, tool_names: Mapping[str, str] = TOOL_NAMES) -> SystemPrompt:
    """The system prompt of an agent: the shared part first, then its own.

    `tool_names` are the names under which the runtime offers each capability. The text depends on
    nothing else, so a provider's prompt cache can hold it.
    """
    return _render_system(agent, tuple(sorted(tool_names.items())))


def render_template(name: str, values: Mapping[str, str]) -> str:
    """Fill `prompts/<name>.md`. `values` must be safe already; empty ones leave no gap."""
    filled = fill(load_prompt(name).text, values)
    return re.sub(r"\n{3,}", "\n\n", filled).strip() + "\n"


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace each `{{name}}` once; what a value contains is not looked at again.

    Raises ConfigurationError for a placeholder without a value.
    """

    def value(match: re.Match[str]) -> str:
        try:
            return values[match.group(1)]
        except KeyError:
            raise ConfigurationError(f"no value for {match.group(0)} in a prompt") from None

    return _PLACEHOLDER.sub(value, text)


@cache
def _sections(name: str) -> Mapping[str, str]:
    parts = _SECTION.split(load_prompt(name).text)
    return {key: text.strip() for key, text in zip(parts[1::2], parts[2::2], strict=True)}


def tool_text(name: str) -> str:
    """What a model is told about a tool (`grep`) or one of its arguments (`grep.pattern`)."""
    return _section("tools", name)


def note(name: str, **values: str) -> str:
    """A remark to a model during a session, from `prompts/notes.md`."""
    return fill(_section("notes", name), values)


def _section(file: str, name: str) -> str:
    try:
        return _sections(file)[name]
    except KeyError:
        raise ConfigurationError(f"prompts/{file}.md has no section {name!r}") from None
