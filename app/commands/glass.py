"""A person breaks the glass: the present head is approved, whatever a review of it says.

No model is asked and no review waited for. A review of this head that ends later says what it
found, and leaves the approval as it is (`app.store.glass`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.commands.facts import Asked
from app.commands.gather import STATES, Place, gather
from app.commands.grammar import BreakGlass
from app.commands.record import note_machine, note_said
from app.commands.render import forced_review, forced_title, glass_answer
from app.commands.seen import Sign
from app.commands.services import CommandServices
from app.domain.effects import (
    CHECK_NAME,
    CheckConclusion,
    CheckStatus,
    Effect,
    PublishReview,
    ReviewEvent,
    SetCheckRun,
)
from app.domain.forge import PublishedCheck
from app.domain.markers import Marker, MarkerKind
from app.domain.policy import Mode
from app.forges.apply import Target, apply
from app.forges.port import Forge
from app.jobs.context import JobContext
from app.store.commands import DecisionRecord, prepare_publication, record_decision
from app.store.glass import GLASS
from app.store.queries import pull_request
from app.store.tables import Publication, PullRequestRow
from loop_guards import GlassDecision, GlassFacts, PullState, answer_glass


async def break_glass(
    job: JobContext, services: CommandServices, forge: Forge, place: Place, said: BreakGlass
) -> None:
    """Approve the head of this moment, once, and say who did."""
    marker = Marker(MarkerKind.COMMENT, place.marker_id)
    target = Target(place.repo, place.number)
    if not job.has("glass"):
        sign = Sign(forge, place)
        await sign.give_early(job, services)
        asked = await gather(job, services, forge, place, (said,))
        if not asked.person.by_human:
            await note_machine(job, asked)
            return
        silent = asked.policy.mode is Mode.SHADOW
        if not silent:
            await sign.give()
        await _store(job, asked, decide(asked), said, marker)
    kept = job.recorded("glass")
    if kept["body"] is None or kept["silent"]:
        return
    if kept["accepted"]:
        checks = await forge.our_checks(place.repo, kept["head_sha"])
        await apply(forge, target, effects_of(kept, place, checks))
    receipt = await forge.ensure_comment(place.repo, place.number, marker, kept["body"])
    await note_said(job, int(kept["publication"]), receipt)


def decide(asked: Asked) -> GlassDecision:
    """The guards' answer."""
    return answer_glass(
        GlassFacts(
            by_human=asked.person.by_human,
            can_write=asked.person.can_write,
            is_open=STATES[asked.pull_request.state] is PullState.OPEN,
        )
    )


def effects_of(
    kept: dict[str, Any], place: Place, checks: Sequence[PublishedCheck]
) -> tuple[Effect, ...]:
    """A review where our reviews bind, and every check of ours on the head green.

    The check of a review that is under way is one of them; without any, there is one of its own.
    """
    decision = answer_glass(GlassFacts(**kept["facts"]))
    ours = {check.external_id: check.id for check in checks if check.name == CHECK_NAME}
    found: dict[str, int | None] = dict(ours) or {f"glass-{place.comment_id}": None}
    effects: list[Effect] = [
        SetCheckRun(
            head_sha=kept["head_sha"],
            external_id=external_id,
            status=CheckStatus.COMPLETED,
            conclusion=CheckConclusion.SUCCESS,
            title=forced_title(kept["login"]),
            summary=forced_review(kept["login"], kept["why"]),
            check_run_id=check_run_id,
            verdict=decision,
        )
        for external_id, check_run_id in found.items()
    ]
    if kept["binds"]:
        effects.append(
            PublishReview(
                event=ReviewEvent.APPROVE,
                body=forced_review(kept["login"], kept["why"]),
                head_sha=kept["head_sha"],
                marker=Marker(MarkerKind.REVIEW, f"glass-{place.comment_id}"),
                verdict=decision,
            )
        )
    return tuple(effects)


async def _store(
    job: JobContext, asked: Asked, decision: GlassDecision, said: BreakGlass, marker: Marker
) -> None:
    """The decision with who gave it, for which head and why, and what is to be said about it."""
    async with job.store.write() as session:
        row = await pull_request(session, asked.repo.repository_id, asked.pull_request.number)
        binds = asked.gated or (row is not None and row.is_fix_pr)
        fresh = Publication(
            marker=str(marker),
            kind="comment",
            pull_request_id=row.id if row else None,
            created_at=asked.now,
            updated_at=asked.now,
        )
        publication, new = await prepare_publication(session, fresh)
        if new:
            publication.receipt = _kept(asked, decision, said, publication, binds=binds)
            await record_decision(session, _record(job, asked, decision, said, row), now=asked.now)
        # Another job for the same comment says what the first could not, of the head of then.
        await job.record_in(session, "glass", {"body": None, **publication.receipt})


def _kept(
    asked: Asked, decision: GlassDecision, said: BreakGlass, row: Publication, *, binds: bool
) -> dict[str, Any]:
    return {
        "accepted": decision.accepted,
        "facts": dict(decision.compared),
        "silent": asked.policy.mode is Mode.SHADOW,
        "binds": binds,
        "head_sha": asked.pull_request.head_sha,
        "login": asked.person.account.login,
        "why": said.why,
        "body": glass_answer(decision, asked.person, asked.pull_request.head_sha),
        "publication": row.id,
    }


def _record(
    job: JobContext,
    asked: Asked,
    decision: GlassDecision,
    said: BreakGlass,
    row: PullRequestRow | None,
) -> DecisionRecord:
    record = decision.as_record()
    return DecisionRecord(
        kind=GLASS,
        outcome=decision.outcome,
        reason=str(decision.reason),
        reasons=tuple(record["reasons"]),
        record={
            **record,
            "number": asked.pull_request.number,
            "head_sha": asked.pull_request.head_sha,
            "login": asked.person.account.login,
            "account_id": asked.person.account.id,
            "why": said.why,
            "source": asked.source,
        },
        repository_id=asked.repo.repository_id,
        pull_request_id=row.id if row else None,
        job_id=job.job_id,
    )
