"""The fixer's agent session: what it is told, what it may do, what its answer is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.agents.asking import AskLimits, ask
from app.agents.findings_xml import ParseOutcome, parse_fix_report
from app.agents.port import AgentEvent, EventSink, ModelRef, booked_by
from app.agents.prompt_context import FixContext, FixFinding, Remark, fixer_prompt
from app.agents.rationed import RationedRuntime
from app.agents.tasks import agent_task
from app.agents.tools import reading_tools
from app.agents.workspace import Workspace
from app.control.routing import Routing
from app.domain.findings import Finding
from app.domain.permits import TurnPermit, must_be
from app.domain.policy import Policy
from app.domain.runs import AgentName, Tier
from app.fixer.facts import TurnFacts
from app.fixer.services import FixerServices
from app.fixer.tools import editing_tools
from app.fixer.workspace import EditableTree
from app.jobs.context import JobContext
from app.policy.paths import instructions_for, withheld_by
from app.store.spend import book_spend
from app.store.usage import book_lineage


@dataclass(frozen=True, slots=True)
class FixAnswer:
    """What the agent says it did, by short id. `failed`: why it can't be used, None if it can."""

    fixed: Mapping[str, str]
    declined: Mapping[str, str]
    summary: str
    failed: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "fixed": dict(self.fixed),
            "declined": dict(self.declined),
            "summary": self.summary,
            "failed": self.failed,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FixAnswer:
        return cls(data["fixed"], data["declined"], data["summary"], data["failed"])


NO_ANSWER = FixAnswer({}, {}, "")


@dataclass(frozen=True, slots=True)
class FixSession:
    """Everything a session of the fixer needs besides the checkout; `permit`: it may begin."""

    job: JobContext
    services: FixerServices
    facts: TurnFacts
    policy: Policy
    permit: TurnPermit

    def __post_init__(self) -> None:
        must_be(self.permit, TurnPermit)

    @property
    def left(self) -> int:
        """How many agent sessions this turn may still begin, whichever worker began the others."""
        return self._runtime.left(AgentName.FIXER.value)

    async def work(self, tree: EditableTree, *, most: int, check_said: str = "") -> FixAnswer:
        """Let the agent work in the checkout, in at most `most` (≥ 1) sessions and never in more
        than the turn has left. An unreadable report is asked for once more.

        `check_said` is what the repository's own check printed about the attempt before.
        """
        withheld = partial(withheld_by, self.policy)
        task = agent_task(
            AgentName.FIXER,
            fixer_prompt(_context(self.facts, self.policy, check_said)),
            _models(self.policy, self.services.routing),
            (
                *reading_tools(Workspace(tree=tree, withheld=withheld)),
                *editing_tools(tree, withheld),
            ),
        )
        answer = await ask(
            task,
            self._runtime,
            parse_fix_report,
            on_event=_booking(self.job, self.facts.lineage_id),
            limits=AskLimits(sessions=most),
        )
        report = answer.parsed
        unusable = report.outcome is ParseOutcome.FAILED
        return FixAnswer(
            fixed=_known(report.fixed, self.facts),
            declined=_known(report.declined, self.facts),
            summary=report.summary,
            failed=(answer.reason or "malformed") if unusable else None,
        )

    @property
    def _runtime(self) -> RationedRuntime:
        return RationedRuntime(self.services.runtime, self.job)


def _booking(job: JobContext, lineage_id: int) -> EventSink:
    """A session is booked when it begins, each call when it ends: a turn that is cut off has paid
    for what it used."""

    async def on_event(event: AgentEvent) -> None:
        if (item := booked_by(event)) is not None:
            async with job.store.write() as session:
                await book_lineage(session, lineage_id, [item], now=job.clock.now())
                if job.claim.repository_id is not None:
                    await book_spend(session, job.claim.repository_id, [item], now=job.clock.now())

    return on_event


def _context(facts: TurnFacts, policy: Policy, check_said: str) -> FixContext:
    said = [("reviewer", facts.remarks), ("check", check_said)]
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
