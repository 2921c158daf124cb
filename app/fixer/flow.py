"""One turn of the built-in fixer: edit in a throwaway checkout, push, propose."""

from __future__ import annotations

from dataclasses import replace

from app.domain.effects import OpenPullRequest
from app.domain.markers import Marker, MarkerKind
from app.domain.policy import Policy
from app.domain.tasks import FixTaskState
from app.errors import ForgeError
from app.fixer.agent import FixAnswer, fix
from app.fixer.gather import TurnFacts, gather
from app.fixer.record import begin_turn, end, finish_turn, keep_answer, refuse_turn
from app.fixer.render import (
    FixView,
    commit_message,
    declined_comment,
    pull_request_body,
    pull_request_title,
)
from app.fixer.services import FixerServices
from app.fixer.verify import Verified, verify
from app.fixer.workspace import EditableTree
from app.forges.port import Forge
from app.git.mirror import Repository
from app.git.process import Remote
from app.git.worktrees import Checkout, Identity, checkout, push, remote_sha
from app.jobs.context import JobContext
from app.policy.read import read_policy
from loop_guards import may_start_round

WORKABLE = (FixTaskState.QUEUED, FixTaskState.FIXING)


async def run_fix_task(job: JobContext, services: FixerServices) -> None:
    """Carry out one turn, once, whatever happens to the worker in between."""
    facts = await gather(job)
    if facts.state not in WORKABLE:
        return
    async with services.open_forge() as forge:
        clone = await forge.clone_remote(facts.repo, write=True)
        remote = Remote(clone.url, clone.token)
        pull_base = await forge.repository(facts.repo)
        mirror = await services.mirrors.ready(
            facts.repo.repository_id,
            remote,
            branches=tuple(dict.fromkeys((facts.base_ref, pull_base.default_branch))),
        )
        default = services.mirrors.branch_ref(pull_base.default_branch)
        policy = (await read_policy(mirror, default)).policy
        decision = may_start_round(facts.round_facts, policy.limits.for_guards())
        if not decision.allowed and not job.has("turn"):
            await refuse_turn(job, facts, decision)
            return
        await begin_turn(job, facts, decision)
        if await _pushed(job, services, forge, facts, policy, mirror, remote):
            await _proposed(job, forge, facts)


async def _pushed(
    job: JobContext,
    services: FixerServices,
    forge: Forge,
    facts: TurnFacts,
    policy: Policy,
    mirror: Repository,
    remote: Remote,
) -> bool:
    """Whether the turn's commit is on the branch. If not, the task has ended with a reason."""
    if not job.has("commit"):
        tip = await remote_sha(mirror, remote, facts.branch)
        if not facts.findings:
            await end(job, facts, FixTaskState.OBSOLETE, "nothing_left")
            return False
        start = tip or await mirror.resolve(services.mirrors.branch_ref(facts.base_ref))
        if tip is not None:
            await services.mirrors.ready(
                facts.repo.repository_id, remote, branches=(facts.branch,), commits=(tip,)
            )
        async with checkout(mirror, start, services.work) as files:
            sha = await _committed(job, services, forge, facts, policy, files)
        if sha is None:
            return False
        # Kept before the push: a restart pushes this very commit, it does not make another.
        await job.record("commit", {"sha": sha, "tip": tip})
    made = job.recorded("commit")
    await push(mirror, remote, sha=made["sha"], branch=facts.branch, expected=made["tip"])
    return True


async def _committed(
    job: JobContext,
    services: FixerServices,
    forge: Forge,
    facts: TurnFacts,
    policy: Policy,
    files: Checkout,
) -> str | None:
    """The agent's work as a commit; None when it made none that passes the check."""
    answer, verified = await _work(services, facts, policy, files)
    await keep_answer(job, facts, answer)
    if answer.failed is not None:
        await end(job, facts, FixTaskState.FAILED, f"fixer_{answer.failed}")
        return None
    if not verified.passed:
        await _declined(job, services, facts, answer, "verify_failed")
        return None
    identity = await forge.identity()
    sha = await files.commit_all(
        commit_message(_view(facts, answer)),
        Identity(identity.commit_name, identity.commit_email),
    )
    if sha is None:
        await _declined(job, services, facts, answer, "nothing_changed")
    return sha


async def _work(
    services: FixerServices, facts: TurnFacts, policy: Policy, files: Checkout
) -> tuple[FixAnswer, Verified]:
    """One session, and one more if the repository's check fails on what it made."""
    tree = EditableTree(files.path)
    answer = await fix(facts, policy, tree, services.runtime, services.routing)
    verified = await verify(policy.verify_command, files.path)
    if verified.passed or answer.failed is not None:
        return answer, verified
    second = await fix(
        facts, policy, tree, services.runtime, services.routing, problem=verified.output
    )
    second = replace(second, usage=answer.usage + second.usage)
    return second, await verify(policy.verify_command, files.path)


async def _declined(
    job: JobContext, services: FixerServices, facts: TurnFacts, answer: FixAnswer, reason: str
) -> None:
    """Nothing is pushed: say why on the pull request that people look at."""
    await end(job, facts, FixTaskState.DECLINED, reason)
    marker = Marker(MarkerKind.COMMENT, f"declined-{facts.task_id}-{facts.turn}")
    number = facts.fix_number or facts.source_number
    async with services.open_reviewer() as reviewer:
        await reviewer.ensure_comment(
            facts.repo, number, marker, declined_comment(_view(facts, answer), reason)
        )


async def _proposed(job: JobContext, forge: Forge, facts: TurnFacts) -> None:
    """The fix pull request exists, and the ledger knows it."""
    if facts.fix_number is not None:
        await finish_turn(job, facts, None)
        return
    view = _view(facts, FixAnswer.from_json(job.recorded("answer")))
    wanted = OpenPullRequest(
        head=facts.branch,
        base=facts.base_ref,
        title=pull_request_title(view),
        body=pull_request_body(view),
        marker=Marker(MarkerKind.FIX, f"task-{facts.task_id}"),
    )
    receipt = await forge.ensure_pull_request(facts.repo, wanted, maybe_published=job.attempt > 1)
    await finish_turn(job, facts, receipt.pull_request)


def _view(facts: TurnFacts, answer: FixAnswer) -> FixView:
    return FixView(
        task_id=facts.task_id,
        source_number=facts.source_number,
        paths=facts.paths,
        findings=facts.findings,
        reports=answer.fixed,
        declined=answer.declined,
        summary=answer.summary,
        turn=facts.turn,
    )


async def report_failure(job: JobContext, error: BaseException) -> None:
    """The job has failed for good: the task is over and its files are free."""
    facts = await gather(job)
    if facts.state in WORKABLE:
        reason = "forge" if isinstance(error, ForgeError) else type(error).__name__
        await end(job, facts, FixTaskState.FAILED, f"turn_failed_{reason}")
