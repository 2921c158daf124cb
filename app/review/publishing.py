"""Puts a stored round on the page: reads the ledger, applies the effects, keeps the receipts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.coverage import Coverage
from app.domain.diff import Diff
from app.domain.effects import (
    CommentReceipt,
    Effect,
    PublishReview,
    Receipt,
    ReviewReceipt,
    SetCheckRun,
    SetStickyComment,
)
from app.domain.findings import Finding
from app.domain.permits import SaidVerdict
from app.domain.policy import HumanPrs, Mode, Policy
from app.domain.runs import RunState, Tier, Usage
from app.domain.tasks import FixTaskState
from app.errors import ForgeRejected
from app.forges.apply import Target, apply
from app.forges.port import Forge
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.turns import turn_request
from app.review.facts import ReviewFacts
from app.review.forced import forced_for
from app.review.publish import (
    Publishing,
    effects_of,
    finding_marker,
    inline_anchors,
    told_in_body,
)
from app.review.render import NextStep, ReviewView, escalation_rule, policy_notes
from app.review.verdict import ask_again
from app.store.findings import finding_comments, finding_rows, to_finding
from app.store.tables import FindingRow, FixTask, PullRequestRow, ReviewRun, ThreadRow
from loop_guards import FindingStatus, HandoffMode, NextReason, Severity, Verdict

_UNANCHORED = "unanchored"
"""The step of a job after which a review goes without inline comments: the forge refused one."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """A round as the ledger holds it."""

    run: ReviewRun
    row: PullRequestRow
    task: FixTask | None
    fresh: tuple[Finding, ...]
    open_before: tuple[Finding, ...]
    fixed: tuple[Finding, ...]
    settled: tuple[Finding, ...]
    earlier: Sequence[ReviewRun]
    overtaken: bool
    spend_notes: tuple[str, ...] = ()


async def publish_round(job: JobContext, forge: Forge, facts: ReviewFacts, run_id: int) -> None:
    """Publish once. A repeat after a crash finds what is there by its markers.

    A round that comes so late that a newer one ended meanwhile only ends the check of its own head.
    One comment that the forge refuses costs the whole review: it is published once more without any
    anchor, everything in its body. One that it takes and shows nobody costs its place alone.
    """
    stored = await _stored(job, facts, run_id)
    if facts.policy.policy.mode is Mode.LIVE and not job.has("published"):
        try:
            await _apply(job, forge, facts, stored)
        except ForgeRejected:
            hopeless = job.has(_UNANCHORED) or not inline_anchors(stored.fresh, facts.diff)
            if hopeless or await _is_on_the_page(job, run_id):
                raise
            await job.record(_UNANCHORED, {})
            await _apply(job, forge, facts, stored)
        await job.record("published", {})
    await _let_the_turn_begin(job, stored)


async def _apply(job: JobContext, forge: Forge, facts: ReviewFacts, stored: _Stored) -> None:
    if job.has(_UNANCHORED):
        facts = replace(facts, diff=Diff(()))
    publishing = await _publishing(job, forge, facts, stored)
    effects = effects_of(publishing)
    if stored.overtaken:
        effects = tuple(effect for effect in effects if isinstance(effect, SetCheckRun))
    again = job.has("publishing")
    if not again:
        await job.record("publishing", {})

    target = Target(facts.repo, facts.pull_request.number)

    async def keep(effect: Effect, receipt: Receipt) -> None:
        await _keep(job, stored, effect, receipt)
        if isinstance(receipt, ReviewReceipt) and receipt.unplaced:
            await apply(forge, target, (told_in_body(publishing, receipt),))

    await apply(forge, target, effects, maybe_published=again, on_receipt=keep)
    if publishing.forced is None and (late := await forced_for(job, facts)) is not None:
        # Somebody broke the glass while this was put on the page: theirs is the last word.
        checks = effects_of(replace(publishing, forced=late))
        await apply(forge, target, [one for one in checks if isinstance(one, SetCheckRun)])


async def _is_on_the_page(job: JobContext, run_id: int) -> bool:
    """Whether the review of this run was published: then it is not its anchors that are refused."""
    async with job.store.read() as session:
        return (await session.get_one(ReviewRun, run_id)).review_id is not None


async def _stored(job: JobContext, facts: ReviewFacts, run_id: int) -> _Stored:
    async with job.store.read() as session:
        run = await session.get_one(ReviewRun, run_id)
        row = await session.get_one(PullRequestRow, facts.pull_request_id)
        task = await session.get(FixTask, run.fix_task_id) if run.fix_task_id else None
        rows = await finding_rows(session, row.id)
        done = await session.exec(
            select(ReviewRun)
            .where(ReviewRun.pull_request_id == row.id, ReviewRun.state == RunState.DONE)
            .order_by(col(ReviewRun.id))
        )
        rounds = done.all()
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
                    and item.status_at == run.finished_at
                ),
            ),
            settled=_values(
                rows,
                lambda item: (
                    item.status in (FindingStatus.ACKNOWLEDGED, FindingStatus.DISMISSED)
                    and item.status_at == run.finished_at
                ),
            ),
            earlier=[item for item in rounds if item.id < run.id],
            overtaken=any(item.id > run.id for item in rounds),
            spend_notes=tuple(job.recorded("spend")["notes"]) if job.has("spend") else (),
        )


def _values(
    rows: Sequence[FindingRow], wanted: Callable[[FindingRow], bool]
) -> tuple[Finding, ...]:
    return tuple(to_finding(row) for row in rows if wanted(row))


async def _publishing(
    job: JobContext, forge: Forge, facts: ReviewFacts, stored: _Stored
) -> Publishing:
    """What is to be published. The guards are asked about the stored round again: only who holds
    their decision can say a verdict."""
    said = ask_again(job.recorded("judged"))
    view = _view(facts, stored, said)
    policy = facts.policy.policy
    async with job.store.read() as session:
        comment_ids = await finding_comments(session, stored.row.id)
    nodes = {
        thread.comments[0].id: thread.node_id
        for thread in facts.threads
        if thread.comments and not thread.resolved
    }
    escalated = view.next_step is NextStep.HUMAN
    earlier = stored.earlier[-1] if stored.earlier else None
    # On a fix the verdict is ours alone, whatever people's own pull requests are given.
    gated = policy.human_prs is HumanPrs.GATE or stored.task is not None
    return Publishing(
        view=view,
        diff=facts.diff,
        pull_request_id=stored.row.id,
        gated=gated,
        is_fix_pr=stored.task is not None,
        decision=said,
        changed=_changed(stored, earlier, gated=gated),
        our_reviews=(
            await forge.our_reviews(facts.repo, facts.pull_request.number)
            if _may_have_judged(stored, policy, gated=gated)
            else ()
        ),
        thread_ids={
            short_id: nodes[comment]
            for short_id, comment in comment_ids.items()
            if comment in nodes
        },
        comment_ids=comment_ids,
        escalation=escalation_rule(str(said.reason)) if escalated else None,
        escalate_to=policy.escalate_to,
        sticky_comment_id=stored.row.sticky_comment_id,
        check_run_id=stored.run.check_run_id,
        forced=await forced_for(job, facts),
    )


def _may_have_judged(stored: _Stored, policy: Policy, *, gated: bool) -> bool:
    """Whether a review of an earlier round may be more than a comment. Where this one is not, that
    takes another policy."""
    others = (run.policy_digest != policy.fingerprint for run in stored.earlier)
    return any(others) or (gated and bool(stored.earlier))


def _changed(stored: _Stored, earlier: ReviewRun | None, *, gated: bool) -> bool:
    """Whether there is anything to say that the last review did not say already.

    Where a review is more than advice, each head gets its own: it speaks for that head alone.
    """
    if earlier is None or gated or stored.fresh or stored.fixed:
        return True
    said_before = any(run.review_id is not None for run in stored.earlier)
    return not said_before or earlier.verdict != stored.run.verdict


def _view(facts: ReviewFacts, stored: _Stored, said: SaidVerdict) -> ReviewView:
    run = stored.run
    binds = stored.task is not None or facts.policy.policy.human_prs is HumanPrs.GATE
    places = inline_anchors(stored.fresh, facts.diff)
    names = {item.id: item.short_id for item in (*stored.fresh, *stored.open_before)}
    return ReviewView(
        run_id=run.id,
        head_sha=run.head_sha,
        verdict=said.verdict,
        summary=run.summary,
        fresh=stored.fresh,
        open_before=stored.open_before,
        fixed=stored.fixed,
        settled=stored.settled,
        inline=frozenset(places),
        blocking=frozenset(names[item] for item in run.blocking if binds and item in names),
        coverage=Coverage.from_json(run.coverage),
        tier=run.tier or Tier.FULL,
        failed_reviewers=tuple(run.incomplete),
        round_number=run.round_number or 1,
        allowance=stored.task.allowance if stored.task else None,
        next_step=_next_step(facts, stored, said),
        usage=run.usage,
        models=tuple(run.models),
        notes=(*policy_notes(facts.policy), *stored.spend_notes),
        task_usage=_task_usage(stored),
    )


def _task_usage(stored: _Stored) -> Usage:
    return sum((run.usage for run in stored.earlier), start=stored.run.usage)


def _next_step(facts: ReviewFacts, stored: _Stored, said: SaidVerdict) -> NextStep:
    if stored.task is None:
        return _after_a_person(facts, stored)
    if said.verdict is Verdict.APPROVED:
        return NextStep.MERGE
    if said.verdict is Verdict.ESCALATED:
        return NextStep.HUMAN
    pauses = said.reason in (NextReason.LOOK_AGAIN, NextReason.STOPPED)
    live = facts.policy.policy.mode is Mode.LIVE
    return NextStep.FIXER_TURN if live and not pauses else NextStep.NOTHING


def _after_a_person(facts: ReviewFacts, stored: _Stored) -> NextStep:
    worth = any(
        item.severity.at_least(Severity.WARNING) for item in (*stored.fresh, *stored.open_before)
    )
    automatic = facts.policy.policy.handoff.mode is HandoffMode.AUTO and not facts.bot_signal
    return NextStep.HANDOFF_AT_MERGE if worth and automatic else NextStep.NOTHING


async def _keep(job: JobContext, stored: _Stored, effect: Effect, receipt: Receipt) -> None:
    """Remember ids at once, so that whoever goes on finds threads and the status comment."""
    match effect, receipt:
        case SetStickyComment(), CommentReceipt(comment_id=comment_id):
            async with job.store.write() as session:
                row = await session.get_one(PullRequestRow, stored.row.id)
                row.sticky_comment_id = comment_id
        case PublishReview(), ReviewReceipt(review_id=review_id, comment_ids=comment_ids):
            async with job.store.write() as session:
                run = await session.get_one(ReviewRun, stored.run.id)
                run.review_id = review_id
                await _keep_threads(session, job, stored, dict(comment_ids))
        case _:
            pass


async def _keep_threads(
    session: AsyncSession, job: JobContext, stored: _Stored, comment_ids: Mapping[str, int]
) -> None:
    now, pull_request_id = job.clock.now(), stored.row.id
    shown = {finding.id: comment_ids.get(finding_marker(finding).id) for finding in stored.fresh}
    rows = await finding_rows(session, pull_request_id)
    threads = {
        row.id: ThreadRow(
            pull_request_id=pull_request_id,
            comment_id=comment_id,
            path=row.path,
            line=row.start_line,
            created_at=now,
            updated_at=now,
        )
        for row in rows
        if row.thread_id is None and (comment_id := shown.get(row.id)) is not None
    }
    session.add_all(threads.values())
    await session.flush()
    for row in rows:
        if row.id in threads:
            row.thread_id = threads[row.id].id


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
