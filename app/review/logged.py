"""What a review writes into the log of its run."""

from __future__ import annotations

from app.agents.logged import heartbeat, line_of, usage_fields
from app.agents.port import AgentEvent, EventSink, Thinking
from app.agents.prompt_context import coordinator_prompt
from app.control.routing import Routing
from app.domain.runs import AgentName
from app.logs import get_logger
from app.review.budget import text_tokens
from app.review.conduct import Conducted
from app.review.judge import Judgement
from app.review.plan import ReviewPlan
from app.review.reviewing import Brief
from app.telemetry.runlog import RunLog

CROWDED = 0.5
"""Of its window, that the coordinator's prompt may fill before somebody is told (DESIGN §4)."""

log = get_logger(__name__)


def noted(run: RunLog, sink: EventSink) -> EventSink:
    """The sink, with every event in the run's log first; a silent model is told of in ours too."""

    async def on_event(event: AgentEvent) -> None:
        kind, fields = line_of(event)
        run.note(kind, **fields)
        if isinstance(event, Thinking):
            log.info(heartbeat(event), session=event.key)
        await sink(event)

    return on_event


def note_plan(run: RunLog, plan: ReviewPlan) -> None:
    """Who reads what, and what is left out."""
    run.note(
        "planned",
        tier=plan.tier.value,
        reviewers=[agent.value for agent in plan.reviewers],
        files=[file.path for file in plan.files],
        seen_before=[file.path for file in plan.seen],
        left_out=[file.path for file in plan.left_out],
        parts=len(plan.parts),
    )


def note_crowding(run: RunLog, brief: Brief, routing: Routing) -> float:
    """How much of its smallest window the coordinator's prompt fills; over half is a warning."""
    prompt = coordinator_prompt(brief.context.for_agent(AgentName.COORDINATOR))
    tokens = text_tokens(prompt)
    windows = [routing.context_window(ref.name) for ref in brief.models(AgentName.COORDINATOR)]
    share = tokens / min(windows)
    if share > CROWDED:
        log.warning("the coordinator's prompt fills more than half of its window", tokens=tokens)
        run.note("crowded_prompt", tokens=tokens, window=min(windows), share=round(share, 2))
    return share


def note_answer(run: RunLog, conducted: Conducted) -> None:
    """What agents said and used, agent by agent, and what the coordinator looked at."""
    for outcome in conducted.outcomes:
        run.note(
            "reviewer",
            reviewer=outcome.reviewer.value,
            status=outcome.status.value,
            reason=outcome.reason,
            findings=len(outcome.findings),
            sessions=outcome.sessions,
            **usage_fields(outcome.usage),
        )
    run.note(
        "coordinator",
        read=sorted(conducted.read),
        incomplete=list(conducted.incomplete),
        **usage_fields(conducted.coordinator_usage),
    )


def note_judgement(run: RunLog, judgement: Judgement) -> None:
    """What became of every finding, and where the coordinator's answer did not hold."""
    for item in judgement.dropped:
        run.note("dropped", refs=list(item.refs), reason=item.reason.value, why=item.why)
    for carried in judgement.carried:
        run.note("carried", finding=carried.finding.short_id, fixed=carried.decision.fixed)
    for new in judgement.new:
        at = new.reported.location
        run.note(
            "kept",
            ref=new.reported.ref,
            severity=new.reported.severity.value,
            path=at.path,
            line=at.start_line,
            title=new.reported.title,
            origin=new.origin.value,
        )
    for problem in judgement.problems:
        run.note("problem", text=problem)
