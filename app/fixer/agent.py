"""The fixer's agent session: what it is told, what it may do, what its answer is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import TypeAdapter

from app.agents.asking import ask
from app.agents.findings_xml import ParseOutcome, parse_fix_report
from app.agents.port import ModelRef, Runtime
from app.agents.prompt_context import FixContext, FixFinding, Remark, fixer_prompt
from app.agents.tasks import agent_task
from app.agents.tools import reading_tools
from app.agents.workspace import Workspace
from app.control.routing import Routing
from app.domain.findings import Finding
from app.domain.policy import Policy
from app.domain.runs import AgentName, Tier, Usage
from app.fixer.gather import TurnFacts
from app.fixer.tools import editing_tools
from app.fixer.workspace import EditableTree
from app.policy.paths import instructions_for, withheld_by

_USAGE: TypeAdapter[Usage] = TypeAdapter(Usage)


@dataclass(frozen=True, slots=True)
class FixAnswer:
    """What the agent says it did. `failed`: why its answer can't be used, None if it can."""

    fixed: Mapping[str, str]
    declined: Mapping[str, str]
    summary: str
    usage: Usage
    failed: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "fixed": dict(self.fixed),
            "declined": dict(self.declined),
            "summary": self.summary,
            "usage": _USAGE.dump_python(self.usage, mode="json"),
            "failed": self.failed,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FixAnswer:
        return cls(
            fixed=data["fixed"],
            declined=data["declined"],
            summary=data["summary"],
            usage=_USAGE.validate_python(data["usage"]),
            failed=data["failed"],
        )


async def fix(
    facts: TurnFacts,
    policy: Policy,
    tree: EditableTree,
    runtime: Runtime,
    routing: Routing,
    *,
    problem: str = "",
) -> FixAnswer:
    """Let the agent work in the checkout. `problem` is what a check said of its last attempt."""
    withheld = partial(withheld_by, policy)
    workspace = Workspace(tree=tree, withheld=withheld)
    task = agent_task(
        AgentName.FIXER,
        fixer_prompt(_context(facts, policy, problem)),
        _models(policy, routing),
        (*reading_tools(workspace), *editing_tools(tree, withheld)),
    )
    answer = await ask(task, runtime, parse_fix_report)
    report = answer.parsed
    unusable = report.outcome is ParseOutcome.FAILED
    return FixAnswer(
        fixed=_known(report.fixed, facts),
        declined=_known(report.declined, facts),
        summary=report.summary,
        usage=answer.usage,
        failed=(answer.reason or "malformed") if unusable else None,
    )


def _context(facts: TurnFacts, policy: Policy, problem: str) -> FixContext:
    said = [("reviewer", facts.remarks), ("check", problem)]
    return FixContext(
        repository=facts.repo.full_name,
        findings=tuple(_finding(item) for item in facts.findings),
        remarks=tuple(Remark(author, text) for author, text in said if text),
        custom_instructions=instructions_for(policy, facts.paths),
    )


def _finding(finding: Finding) -> FixFinding:
    return FixFinding(
        id=finding.short_id,
        path=finding.location.path or "",
        line=finding.location.start_line,
        severity=finding.severity.value,
        title=finding.title,
        body=finding.body,
        suggestion=finding.suggestion,
        also=finding.also,
    )


def _models(policy: Policy, routing: Routing) -> tuple[ModelRef, ...]:
    chain = routing.chain_for(AgentName.FIXER, Tier.FULL)
    chosen = policy.models.of(AgentName.FIXER)
    names = (chosen,) if chosen else chain.models
    return tuple(ModelRef(chain.provider, name) for name in names)


def _known(claims: tuple[tuple[str, str], ...], facts: TurnFacts) -> dict[str, str]:
    """Only claims about findings of this turn count."""
    ids = {finding.short_id for finding in facts.findings}
    return {short_id: text for short_id, text in claims if short_id in ids}
