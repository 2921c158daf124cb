"""One turn of the built-in fixer: edit in a throwaway checkout, push, propose."""

from __future__ import annotations

from dataclasses import replace

from app.domain.effects import NEEDS_HUMAN, AddLabel, Comment, Effect, OpenPullRequest
from app.domain.markers import Marker, MarkerKind
from app.domain.permits import TurnPermit
from app.domain.policy import Mode, Policy
from app.domain.tasks import FixTaskState
from app.errors import ConfigurationError, ForgeError
from app.fixer.agent import FixAnswer, FixSession
from app.fixer.attempt import Ended, attempt
from app.fixer.branches import Lost, before_push, before_turn
from app.fixer.facts import Place, TurnFacts
from app.fixer.gather import find_place, gather, gone_from, is_proposed
from app.fixer.record import (
    Words,
    begin_turn,
    drop_gone,
    end_turn,
    escalate,
    finish_turn,
    keep_commit,
    pause,
)
from app.fixer.render import (
    ended_comment,
    escalated_comment,
    pull_request_body,
    pull_request_title,
    view_of,
)
from app.fixer.services import FixerServices
from app.forges.apply import Target, apply
from app.forges.port import Forge
from app.git.process import Remote
from app.git.worktrees import Identity, push, remote_sha
from app.jobs.context import JobContext
from app.jobs.places import repo_of
from loop_guards import StartDecision, StartReason, TaskEvent, may_start_turn

WORKABLE = (FixTaskState.QUEUED, FixTaskState.FIXING)
_PAUSES = (StartReason.STOPPED, StartReason.KILL_SWITCH)
"""Refusals that a person lifts for everything at once; the task itself has done nothing wrong."""


async def run_fix_task(job: JobContext, services: FixerServices) -> None:
    """Carry out one turn, once, whatever happens to the worker in between."""
    facts = await gather(job)
    if not job.has("ended") and is_due(facts):
        async with services.open_forge() as forge:
            if not await is_proposed(forge, facts):
                return
            await _turn(job, services, forge, facts)
    await _tell(job, services)


async def _turn(job: JobContext, services: FixerServices, forge: Forge, facts: TurnFacts) -> None:
    place = await find_place(services, forge, facts)
    if place is None:
        await _failed(job, facts, "base_gone")
        return
    if not job.has("commit"):
        session = await _begun(job, services, facts, place)
        if session is None or not await _committed(session, forge, place):
            return
        facts = session.facts
    if await _pushed(job, forge, facts, place):
        await _proposed(job, forge, facts)


def is_due(facts: TurnFacts) -> bool:
    """Whether this turn is still the task's; another job may have gone past it."""
    return facts.state in WORKABLE and facts.turn >= facts.turns_begun


async def report_failure(job: JobContext, error: BaseException, services: FixerServices) -> None:
    """The job has failed for good: the task is over, its files are free, and people are told."""
    facts = await gather(job)
    if job.has("ended") or not is_due(facts):
        return
    ended = Ended(TaskEvent.TURN_FAILED, _failure(error))
    await end_turn(job, facts, ended, _words(facts, ended))
    await _tell(job, services)


def _failure(error: BaseException) -> str:
    """The reason of a turn that failed for good."""
    if isinstance(error, ConfigurationError):
        return "not_configured"
    kind = "forge" if isinstance(error, ForgeError) else type(error).__name__
    return f"turn_failed_{kind}"


async def _begun(
    job: JobContext, services: FixerServices, facts: TurnFacts, place: Place
) -> FixSession | None:
    """The session of a turn that the guards let begin, None when it does not begin.

    A turn that a restart interrupted is asked about again: its session is a model run of its own.
    """
    again = job.has("turn")
    if not (again or await _has_place(job, facts, place)):
        return None
    decision = may_start_turn(facts.round_facts, place.policy.limits.for_guards())
    if not decision.allowed:
        await _refused(job, facts, place.policy, decision)
        return None
    left = facts if again else await _left(job, facts, place, decision)
    if left is None:
        return None
    permit = TurnPermit(decision)
    await begin_turn(job, left, permit)
    return FixSession(job, services, left, place.policy, permit)


async def _has_place(job: JobContext, facts: TurnFacts, place: Place) -> bool:
    """Whether the policy lets us work, and the branch is ours. If not, that is settled."""
    if place.policy.mode is Mode.SHADOW:
        await pause(job, facts, None, "shadow")
        return False
    lost = before_turn(proposed=facts.fix_number is not None, tip=place.tip)
    if lost is not None:
        await _failed(job, facts, lost)
    return lost is None


async def _refused(
    job: JobContext, facts: TurnFacts, policy: Policy, decision: StartDecision
) -> None:
    if decision.reason in _PAUSES:
        await pause(job, facts, decision, str(decision.reason))
    else:
        words = _escalation(facts, str(decision.reason), policy)
        await escalate(job, facts, decision, words)


async def _left(
    job: JobContext, facts: TurnFacts, place: Place, decision: StartDecision
) -> TurnFacts | None:
    """The facts without what the base has lost meanwhile, None when that was all."""
    gone = await gone_from(place, facts)
    await drop_gone(job, facts, gone)
    left = tuple(finding for finding in facts.findings if finding.id not in gone)
    if not left:
        ended = Ended(TaskEvent.EMPTIED_BY_BASE, "nothing_left")
        await end_turn(job, facts, ended, _words(facts, ended), decision)
        return None
    return replace(facts, findings=left)


async def _committed(session: FixSession, forge: Forge, place: Place) -> bool:
    """Whether the turn's work is a commit in the mirror. If not, the turn has ended."""
    me = await forge.identity()
    done = await attempt(session, place, Identity(me.commit_name, me.commit_email))
    job, facts = session.job, session.facts
    if isinstance(done, Ended):
        await end_turn(job, facts, done, _words(facts, done))
        return False
    await keep_commit(job, facts, place, done)
    return True


async def _pushed(job: JobContext, forge: Forge, facts: TurnFacts, place: Place) -> bool:
    """Whether the commit is on the branch. Who pushed there meanwhile keeps what they pushed: its
    own review goes on from that, and this turn's work is dropped."""
    made = job.recorded("commit")
    # The token that the turn began with may have run out during the work.
    clone = await forge.clone_remote(facts.repo, write=True)
    remote = Remote(clone.url, clone.token)
    at = await remote_sha(place.mirror, remote, facts.branch)
    lost = before_push(
        proposed=facts.fix_number is not None, tip=made["tip"], at=at, sha=made["sha"]
    )
    if lost is None:
        await push(place.mirror, remote, sha=made["sha"], branch=facts.branch, expected=made["tip"])
    elif lost is Lost.MOVED:
        await finish_turn(job, facts, at, reason=lost)
    else:
        await _failed(job, facts, lost)
    return lost is None


async def _proposed(job: JobContext, forge: Forge, facts: TurnFacts) -> None:
    """The fix pull request exists, and the ledger knows it."""
    made = job.recorded("commit")
    if facts.fix_number is not None:
        await finish_turn(job, facts, made["sha"])
        return
    view = view_of(facts, FixAnswer.from_json(made["answer"]))
    wanted = OpenPullRequest(
        head=facts.branch,
        base=facts.base_ref,
        title=pull_request_title(view),
        body=pull_request_body(view),
        marker=Marker(MarkerKind.FIX, f"task:{facts.task_id}"),
    )
    receipt = await forge.ensure_pull_request(facts.repo, wanted)
    await finish_turn(job, facts, made["sha"], receipt.pull_request)


async def _failed(job: JobContext, facts: TurnFacts, reason: str) -> None:
    ended = Ended(TaskEvent.TURN_FAILED, reason)
    await end_turn(job, facts, ended, _words(facts, ended))


def _words(facts: TurnFacts, ended: Ended) -> Words:
    body = ended_comment(view_of(facts, ended.answer), ended.reason)
    return Words(facts.page, Comment(_marker(facts), body))


def _escalation(facts: TurnFacts, reason: str, policy: Policy) -> Words:
    body = escalated_comment(view_of(facts), reason, policy.escalate_to)
    return Words(facts.page, Comment(_marker(facts), body), label=True)


def _marker(facts: TurnFacts) -> Marker:
    return Marker(MarkerKind.COMMENT, f"task:{facts.task_id}:turn:{facts.turn}")


async def _tell(job: JobContext, services: FixerServices) -> None:
    """Say why the task ended, once; what was stored with its end is said, also by a later try."""
    said = job.recorded("ended") if job.has("ended") else None
    if said is None or job.has("told"):
        return
    marker = Marker(MarkerKind.COMMENT, said["marker"])
    effects: list[Effect] = [Comment(marker, said["body"])]
    if said["label"]:
        effects.append(AddLabel(NEEDS_HUMAN))
    async with services.open_reviewer() as reviewer:
        target = Target(await repo_of(job), int(said["number"]))
        await apply(reviewer, target, effects)
    await job.record("told")
