"""Every prompt as a model gets it: whole, per agent, with what it costs.

After a wanted change: `MERGEWARD_WRITE_GOLDEN=1 pytest tests/prompts`, then read the difference.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.agents.port import AgentTask
from app.domain.runs import SHIPPED_AGENTS, AgentName, Tier
from app.review.budget import FIXED_TOKENS, text_tokens
from tests.prompts.example import fixer_task, shared_file, tasks

GOLDEN = Path(__file__).parent / "golden"
CHARS_PER_TOKEN = 4
"""Of English prose, as providers say: what is long enough by this is so by every tokenizer of
theirs. The bounds are Anthropic's ("Prompt caching", 2026-11)."""
WRITE = bool(os.environ.get("MERGEWARD_WRITE_GOLDEN"))


def whole(task: AgentTask) -> str:
    """Both halves of a prompt, as they stand before the model's first answer."""
    return f"===== system =====\n{task.system}\n===== first message =====\n{task.prompt}"


def by_agent() -> dict[str, tuple[AgentTask, tuple[Tier, ...]]]:
    """Each different prompt once, by the name of its file, with the tiers that it is used in."""
    found: dict[AgentName, dict[str, tuple[AgentTask, tuple[Tier, ...]]]] = {}
    for tier in Tier:
        for agent, task in asyncio.run(tasks(tier)).items():
            _, tiers = found.setdefault(agent, {}).get(whole(task), (task, ()))
            found[agent][whole(task)] = (task, (*tiers, tier))
    found[AgentName.FIXER] = {"": (fixer_task(), ())}
    return {
        name: used for agent in SHIPPED_AGENTS for name, used in _named(agent, found.get(agent, {}))
    }


def _named(
    agent: AgentName, prompts: Mapping[str, tuple[AgentTask, tuple[Tier, ...]]]
) -> Iterator[tuple[str, tuple[AgentTask, tuple[Tier, ...]]]]:
    for task, tiers in prompts.values():
        yield (agent if len(prompts) == 1 else f"{agent}.{'+'.join(tiers)}"), (task, tiers)


PROMPTS = by_agent()


def tools_as_sent(task: AgentTask) -> str:
    """What a request says of the tools, near enough to count."""
    return json.dumps(
        [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in task.tools
        ]
    )


def table() -> str:
    """Which file each agent's prompt is in, in which tiers, which version, and what it costs."""
    rows = [
        f"| `{name}.txt` | {', '.join(tiers) or 'fix tasks'} | `{task.prompt_version}` "
        f"| {count['tools']:,} | {count['system']:,} | {count['first']:,} "
        f"| {sum(count.values()):,} |"
        for name, (task, tiers) in PROMPTS.items()
        for count in [tokens(task)]
    ]
    return HEAD + "\n".join(rows) + "\n"


HEAD = """\
# What each prompt costs

Tokens by the estimate that budgets use (`app.review.budget.text_tokens`, two bytes a token), which
errs on the high side: English prose comes to about half of it. The first message is that of the
example in `tests/prompts/example.py`; tools and system are the same for every change.

| prompt | tiers | version | tools | system | first message | all |
| --- | --- | --- | ---: | ---: | ---: | ---: |
"""


def tokens(task: AgentTask) -> dict[str, int]:
    return {
        "tools": text_tokens(tools_as_sent(task)),
        "system": text_tokens(task.system),
        "first": text_tokens(task.prompt),
    }


FILES = {
    **{f"{name}.txt": whole(task) for name, (task, _) in PROMPTS.items()},
    "shared-pr-context.txt": asyncio.run(shared_file()),
    "tokens.md": table(),
}


@pytest.mark.parametrize("name", FILES)
def test_golden(name: str) -> None:
    """A change of what a model is told, or of what that costs, is seen in review."""
    path = GOLDEN / name
    if WRITE:
        path.write_text(FILES[name], encoding="utf-8")
    assert FILES[name] == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    """Every golden file belongs to a render."""
    found = {path.name for path in GOLDEN.iterdir()}
    if WRITE:
        for name in found - set(FILES):
            (GOLDEN / name).unlink()
        return
    assert found == set(FILES)


def test_every_agent_is_there() -> None:
    """Coordinator, fixer and eight reviewers, each reviewer in the tiers of DESIGN §4."""
    assert {task.agent for task, _ in PROMPTS.values()} == set(SHIPPED_AGENTS)
    seen = {(task.agent, tier) for task, tiers in PROMPTS.values() for tier in tiers}
    assert {agent for agent, tier in seen if tier is Tier.TRIVIAL} == {
        AgentName.COORDINATOR,
        AgentName.GENERAL,
    }
    assert len(seen) == 2 + 4 + 8


def test_two_renders_are_one() -> None:
    """To the byte: nothing in a prompt depends on when or where it was made."""
    assert {name: whole(task) for name, (task, _) in by_agent().items()} == {
        name: whole(task) for name, (task, _) in PROMPTS.items()
    }


def test_nothing_of_the_machine_is_in_a_prompt() -> None:
    """No path of this checkout, no day, no key."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    strange = (str(Path(__file__).parents[2]), today, "a-key-of-the-example")
    assert not [word for word in strange for file in FILES.values() if word in file]


@pytest.mark.parametrize("name", PROMPTS)
def test_there_is_room_for_what_is_the_same_each_time(name: str) -> None:
    """Budgets set aside what system, tools and an answer take: no prompt outgrows that unseen."""
    task, _ = PROMPTS[name]
    count = tokens(task)
    assert count["tools"] + count["system"] + task.limits.max_output_tokens <= FIXED_TOKENS


@pytest.mark.parametrize("name", PROMPTS)
def test_what_is_the_same_each_time_is_long_enough_to_be_cached(name: str) -> None:
    """A shorter prefix is paid for in full with every call: 4,096 tokens on the coordinator's
    models, 2,048 on the reviewers'."""
    task, _ = PROMPTS[name]
    if task.agent == AgentName.FIXER:
        return
    least = 4_096 if task.agent == AgentName.COORDINATOR else 2_048
    assert (len(tools_as_sent(task)) + len(task.system)) / CHARS_PER_TOKEN > least
