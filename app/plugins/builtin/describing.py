"""The prompts' description of a change from a run's facts."""

from __future__ import annotations

from app.agents.prompt_context import PromptContext
from app.plugins.facts import RunFacts


def described(facts: RunFacts) -> PromptContext:
    """All that people said and earlier rounds found; files and instructions come with the plan."""
    return PromptContext(
        repository=facts.repository,
        number=facts.number,
        title=facts.title,
        body=facts.body,
        author=facts.author,
        base_ref=facts.base_ref,
        base_sha=facts.base_sha,
        head_ref=facts.head_ref,
        head_sha=facts.head_sha,
        comments=facts.comments,
        findings=facts.findings,
        previous_review=facts.previous_review,
        round_number=facts.round_number,
        is_fix=facts.is_fix,
    )
