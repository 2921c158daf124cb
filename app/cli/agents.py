"""`mergeward agents`: who reviews what, on which models, with which prompts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TextIO

from app.agents.configured import providers_of, routing_of
from app.cli.output import one_line, path_name, tolerate
from app.cli.policy import read_policy_file
from app.control.routing import shipped_routing
from app.domain.policy import Policy
from app.domain.runs import Tier
from app.policy.load import parse_policy
from app.review.roster import Member, roster
from app.settings import load_settings


def show(
    policy: Path | None, provider: str | None, *, as_json: bool, out: TextIO = sys.stdout
) -> None:
    """Print the agents of the settings of now. Raises PolicyError for a policy that can't be used,
    and ConfigurationError for a provider that nothing is shipped for."""
    tolerate(sys.stdout, sys.stderr)
    settings = load_settings()
    if provider is None and not providers_of(settings):
        provider = "anthropic"
    routing = routing_of(settings) if provider is None else shipped_routing(provider)
    chosen = Policy() if policy is None else _policy(policy)
    members = roster(chosen, routing)
    if as_json:
        out.write(json.dumps([member.to_json() for member in members]) + "\n")
        return
    out.writelines(_lines(member) for member in members)


def _policy(file: Path) -> Policy:
    return parse_policy(read_policy_file(file), path_name(str(file)))


def _lines(member: Member) -> str:
    chains: dict[str, list[str]] = {}
    for tier, refs in member.models:
        chains.setdefault(" > ".join(map(str, refs)), []).append(tier.value)
    only = f"; starts if {member.only_if}" if member.only_if else ""
    head = f"{member.agent.value}: {member.prompt}, {member.prompt_tokens:,} tokens{only}\n"
    rows = (f"  {_when(tiers):16}{one_line(chain)}\n" for chain, tiers in chains.items())
    return head + "".join(rows)


def _when(tiers: list[str]) -> str:
    return "always" if len(tiers) == len(Tier) else ", ".join(tiers)
