"""The plugins of the benchmarks' reviews: as in a service, with a codex, so that the compliance
reviewer takes part and a review of the full tier has all its seven."""

from __future__ import annotations

from pathlib import Path

from app.control.routing import shipped_routing
from app.plugins.builtin.compliance import CompliancePlugin
from app.plugins.fetch import Fetcher
from app.plugins.lifecycle import PluginHost
from tests.review.story import plugins

CODEX = """
rules:
  - id: ENG-001
    title: Handlers hold no queries
    text: A handler calls a function of the store; it builds no statement of its own.
  - id: ENG-002
    title: Money is counted in whole cents
    text: Amounts are integers in the smallest unit of their currency, never floating point.
"""


def everybody(folder: Path, provider: str) -> PluginHost:
    """All reviewers on a provider's models. Writes the codex into the folder."""
    file = folder / "codex.yml"
    file.write_text(CODEX, encoding="utf-8")
    return plugins(shipped_routing(provider), CompliancePlugin(str(file), Fetcher()))
