"""`mergeward agents`: who reviews what, on which models, with which prompts."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TextIO

from app.agents.port import ModelRef
from app.cli.output import one_line, path_name, tolerate, warn
from app.cli.policy import read_policy_file
from app.control.routing import shipped_routing
from app.domain.policy import Policy
from app.domain.runs import AgentName, Tier
from app.errors import NoModelConfigured
from app.logs import configure_logging
from app.plugins.configuration import RunConfiguration
from app.plugins.configured import plugins_of
from app.plugins.facts import RunFacts, RunKind, no_file
from app.policy.load import parse_policy
from app.review.roster import Member, roster
from app.settings import LogFormat, Settings, load_settings

NOT_CONFIGURED = "anthropic"
"""Whose shipped models are shown while no model can be reached."""

_HEAD = ("agent", "tiers", "models", "prompt", "tokens")


def show(
    policy: Path | None, provider: str | None, *, as_json: bool, out: TextIO = sys.stdout
) -> None:
    """Print the agents of the settings of now, plugins included, or the shipped ones of `provider`.

    Raises PolicyError for a policy that can't be used, and PluginError or ConfigurationError for
    settings that no review could run with.
    """
    tolerate(sys.stdout, sys.stderr)
    configure_logging(log_format=LogFormat.CONSOLE, level="warning")
    chosen = Policy() if policy is None else _policy(policy)
    members = _shipped(chosen, provider) if provider else _configured(chosen, load_settings())
    if as_json:
        out.write(json.dumps([member.to_json() for member in members]) + "\n")
        return
    out.writelines(f"{line}\n" for line in _lines(members))


def _shipped(policy: Policy, provider: str) -> tuple[Member, ...]:
    return roster(policy, shipped_routing(provider))


def _configured(policy: Policy, settings: Settings) -> tuple[Member, ...]:
    """As a review would be put together now."""
    try:
        configuration = asyncio.run(_ask_plugins(policy, settings))
    except NoModelConfigured as error:
        warn(f"{error} Shown is what {NOT_CONFIGURED} would get.")
        return _shipped(policy, NOT_CONFIGURED)
    return roster(policy, configuration.routing, configuration)


async def _ask_plugins(policy: Policy, settings: Settings) -> RunConfiguration:
    facts = RunFacts(RunKind.LOCAL, repository="", policy=policy)
    async with aclosing(plugins_of(settings)) as plugins:
        return await plugins.configured(facts, no_file)


def _policy(file: Path) -> Policy:
    return parse_policy(read_policy_file(file), path_name(str(file)))


def _lines(members: Sequence[Member]) -> Iterator[str]:
    """A table with a row for each agent and chain, then what goes for several rows."""
    rows = [_HEAD, *(row for member in members for row in _rows(member))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *cells, tokens in rows:
        left = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=False))
        yield f"{left}  {tokens.rjust(widths[-1])}".rstrip()
    yield ""
    for member in members:
        if member.only_if:
            yield f"{member.agent.value} starts if {one_line(member.only_if)}."
    yield "Models from left to right: the first choice, then what is asked when it fails."
    yield "Tokens of the system prompt, an upper estimate (two bytes a token)."


def _rows(member: Member) -> Iterator[tuple[str, ...]]:
    chains: dict[str, list[Tier]] = {}
    for tier, refs in member.models:
        chains.setdefault(_chain(refs), []).append(tier)
    first = (member.agent.value, member.prompt, f"{member.prompt_tokens:,}")
    for chain, tiers in chains.items():
        agent, prompt, tokens = first
        yield agent, _when(member, tiers), chain, prompt, tokens
        first = ("", "", "")


def _chain(refs: Sequence[ModelRef]) -> str:
    """`provider/first > second`: a chain stays with its provider."""
    head, *others = refs
    return one_line(" > ".join((str(head), *(ref.name for ref in others))))


def _when(member: Member, tiers: Sequence[Tier]) -> str:
    if member.agent == AgentName.FIXER:
        return "fix tasks"
    return "all" if len(tiers) == len(Tier) else ", ".join(tier.value for tier in tiers)
