"""Puts a stored round on the page: reads the ledger, applies the effects, keeps the receipts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.coverage import Coverage
from app.domain.effects import (
    CommentReceipt,
    Effect,
    PublishReview,
    Receipt,
    ReviewReceipt,
    SetStickyComment,
)
from app.domain.findings import Finding
from app.domain.policy import HumanPrs, Mode
from app.domain.runs import RunState, Tier, Usage
from app.domain.tasks import FixTaskState
from app.forges.apply import Target, apply
from app.forges.port import Forge
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.turns import turn_request
from app.review.facts import ReviewFacts
from app.review.publish import Publishing, effects_of, finding_marker, inline_anchors
from app.review.record import finding_comments
from app.review.render import NextStep, ReviewView, escalation_rule
from app.store.findings import finding_rows, to_finding
from app.store.tables import FindingRow, FixTask, PullRequestRow, ReviewRun, ThreadRow
from loop_guards import FindingStatus, HandoffMode, Severity, Verdict


@dataclass(frozen=True, slots=True)
class _Stored:
    """A round as the ledger holds it."""

    run: ReviewRun
    row: PullRequestRow
    task: FixTask | None
    fresh: tuple[Finding, ...]
    open_before: tuple[Finding, ...]
    fixed: tuple[Finding, ...]
    earlier: Sequence[ReviewRun]


async def publish_round(job: JobContext, forge: Forge, facts: ReviewFacts, run_id: int) -> None:
    """Publish once. A repeat after a crash finds what is there by its markers."""
    stored = await _stored(job, facts, run_id)
    if facts.policy.policy.mode is Mode.LIVE and not job.has("published"):
        publishing = await _publishing(job, forge, facts, stored)
        again = job.has("publishing")
        if not again:
            await job.record("publishing", {})
        target = Target(facts.repo, facts.pull_request.number)
        effects = effects_of(publishing)
        receipts = await apply(forge, target, effects, maybe_published=again)
        await _keep(job, facts, stored, effects, receipts)
    await _let_the_turn_begin(job, stored)


async def _stored(job: JobContext, facts: ReviewFacts, run_id: int) -> _Stored:
    async with job.store.read() as session:
        run = await session.get_one(ReviewRun, run_id)
        row = await session.get_one(PullRequestRow, facts.pull_request_id)
        task = await session.get(FixTask, run.fix_task_id) if run.fix_task_id else None
        rows = await finding_rows(session, row.id)
        earlier = await session.exec(
            select(ReviewRun)
            .where(
                ReviewRun.pull_request_id == row.id,
                ReviewRun.state == RunState.DONE,
                col(ReviewRun.id) < run.id,
            )
            .order_by(col(ReviewRun.id))
        )
        return _Stored(
            run=run,
            row=row,
            task=task,
            fresh=_values(rows, lambda item: item.first_seen_run_id == run.id),
            open_before=_values(
                rows,
                lambda item: item.first_seen_run_id != run.id and item.status is FindingStatus.OPEN,
            ),
            fixed=_values(
                rows,
                lambda item: (
                    item.status is FindingStatus.FIXED
                    and item.fixed_sha == run.head_sha
                    and item.first_seen_run_id != run.id
                ),
            ),
            earlier=earlier.all(),
        )


def _values(
    rows: Sequence[FindingRow], wanted: Callable[[FindingRow], bool]
) -> tuple[Finding, ...]:
    return tuple(to_finding(row) for row in rows if wanted(row))


async def _publishing(
    job: JobContext, forge: Forge, facts: ReviewFacts, stored: _Stored
) -> Publishing:
    view = _view(facts, stored)
    policy = facts.policy.policy
    comment_ids = await finding_comments(job, stored.row.id)
    nodes = {
        thread.comments[0].id: thread.node_id
        for thread in facts.threads
        if thread.comments and not thread.resolved
    }
    escalated = view.next_step is NextStep.HUMAN
    earlier = stored.earlier[-1] if stored.earlier else None
    return Publishing(
        view=view,
        diff=facts.diff,
        pull_request_id=stored.row.id,
        gated=policy.human_prs is HumanPrs.GATE,
        is_fix_pr=stored.task is not None,
        approves=_approves(stored),
        changed=_changed(stored, earlier),
        our_reviews=(
            await forge.our_reviews(facts.repo, facts.pull_request.number) if earlier else ()
        ),
        thread_ids={
            short_id: nodes[comment]
            for short_id, comment in comment_ids.items()
            if comment in nodes
        },
        comment_ids=comment_ids,
        escalation=escalation_rule(str(stored.run.reason)) if escalated else None,
        escalate_to=policy.escalate_to,
        sticky_comment_id=stored.row.sticky_comment_id,
        check_run_id=stored.run.check_run_id,
    )


def _approves(stored: _Stored) -> bool:
    """Only a fully covered head is approved; the verdict was decided by the guards."""
    verdicts = (Verdict.APPROVED, Verdict.APPROVED_WITH_COMMENTS)
    full = Coverage.from_json(stored.run.coverage).is_full and not stored.run.incomplete
    return full and stored.run.verdict in verdicts


def _changed(stored: _Stored, earlier: ReviewRun | None) -> bool:
    """Whether there is anything to say that the last review did not say already."""
    if earlier is None or stored.fresh or stored.fixed:
        return True
    return earlier.verdict != stored.run.verdict or stored.task is not None


def _view(facts: ReviewFacts, stored: _Stored) -> ReviewView:
    run = stored.run
    places = inline_anchors(stored.fresh, facts.diff)
    names = {item.id: item.short_id for item in (*stored.fresh, *stored.open_before)}
    return ReviewView(
        run_id=run.id,
        head_sha=run.head_sha,
        verdict=run.verdict or Verdict.ESCALATED,
        summary=run.summary,
        fresh=stored.fresh,
        open_before=stored.open_before,
        fixed=stored.fixed,
        inline=frozenset(places),
        blocking=frozenset(names[item] for item in run.blocking if item in names),
        coverage=Coverage.from_json(run.coverage),
        tier=run.tier or Tier.FULL,
        failed_reviewers=tuple(run.incomplete),
        round_number=run.round_number or 1,
        allowance=stored.task.allowance if stored.task else None,
        next_step=_next_step(facts, stored),
        usage=run.usage,
        models=tuple(run.models),
        notes=(facts.policy.problem,) if facts.policy.problem else (),
        task_usage=_task_usage(stored),
    )


def _task_usage(stored: _Stored) -> Usage:
    return sum((run.usage for run in stored.earlier), start=stored.run.usage)


def _next_step(facts: ReviewFacts, stored: _Stored) -> NextStep:
    run, task = stored.run, stored.task
    if task is None:
        return _after_a_person(facts, stored)
    if run.verdict is Verdict.APPROVED:
        return NextStep.MERGE
    escalated = run.verdict is Verdict.ESCALATED
    return NextStep.HUMAN if escalated else NextStep.FIXER_TURN


def _after_a_person(facts: ReviewFacts, stored: _Stored) -> NextStep:
    worth = any(
        item.severity.at_least(Severity.WARNING) for item in (*stored.fresh, *stored.open_before)
    )
    automatic = facts.policy.policy.handoff.mode is HandoffMode.AUTO and not facts.bot_signal
    return NextStep.HANDOFF_AT_MERGE if worth and automatic else NextStep.NOTHING


async def _keep(
    job: JobContext,
    facts: ReviewFacts,
    stored: _Stored,
    effects: Sequence[Effect],
    receipts: Sequence[Receipt],
) -> None:
    """Remember ids, so that the next round finds threads and the status comment at once."""
    by_effect = dict(zip(map(type, effects), receipts, strict=True))
    async with job.store.write() as session:
        row = await session.get_one(PullRequestRow, stored.row.id)
        sticky = by_effect.get(SetStickyComment)
        if isinstance(sticky, CommentReceipt):
            row.sticky_comment_id = sticky.comment_id
        review = by_effect.get(PublishReview)
        if isinstance(review, ReviewReceipt):
            run = await session.get_one(ReviewRun, stored.run.id)
            run.review_id = review.review_id
            await _keep_threads(session, job, stored, dict(review.comment_ids))
        await job.record_in(session, "published", {})


async def _keep_threads(
    session: AsyncSession, job: JobContext, stored: _Stored, comment_ids: Mapping[str, int]
) -> None:
    now = job.clock.now()
    for finding in stored.fresh:
        comment_id = comment_ids.get(finding_marker(finding).id)
        if comment_id is None:
            continue
        thread = ThreadRow(
            pull_request_id=stored.row.id,
            comment_id=comment_id,
            path=finding.location.path,
            line=finding.location.start_line,
            created_at=now,
            updated_at=now,
        )
        session.add(thread)
        await session.flush()
        row = await session.get_one(FindingRow, finding.id)
        row.thread_id = thread.id


async def _let_the_turn_begin(job: JobContext, stored: _Stored) -> None:
    """The turn was queued with the verdict; now that the page shows it, it need not wait."""
    if stored.task is None or stored.task.state is not FixTaskState.QUEUED:
        return
    now = job.clock.now()
    async with job.store.write() as session:
        await enqueue(
            session,
            replace(turn_request(stored.task, job.claim.installation_id), run_at=now),
            now=now,
        )
    job.notify()
