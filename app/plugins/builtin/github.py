"""`github`: what a pull request is, for the agents' prompts."""

from __future__ import annotations

from app.plugins.builtin.describing import described
from app.plugins.context import ConfigureContext
from app.plugins.facts import RunFacts, RunKind
from app.plugins.port import ReviewPlugin


class GitHubPlugin(ReviewPlugin):
    """Describes the change of a pull request (or of a fix task), with what only a forge knows."""

    name = "github"

    def configure(self, context: ConfigureContext) -> None:
        if context.facts.kind is RunKind.LOCAL:
            return
        context.describe_change(described(context.facts))
        context.prompt_section("Pull request", _forge_facts(context.facts))


def _forge_facts(facts: RunFacts) -> str:
    """What is not in title and body, and changes how a change is read; "" when nothing does."""
    said = []
    if facts.draft:
        said.append("state: draft")
    if facts.from_fork:
        said.append("source: a fork")
    if facts.labels:
        said.append(f"labels: {', '.join(' '.join(label.split()) for label in facts.labels[:20])}")
    return "\n".join(said)
