"""A button of our check run was pressed: a review of the present head, or what a comment with that
command would do."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.commands.decide import review_refused
from app.commands.facts import Person
from app.commands.flow import say
from app.commands.gather import STATES, Place, Where, gather, policy_of, who_asks
from app.commands.grammar import Command, Fix, Why
from app.commands.record import store_answers
from app.commands.requests import review_request
from app.commands.services import CommandServices
from app.domain.jobs import causes_of
from app.domain.markers import Marker, MarkerKind
from app.domain.policy import Mode, Policy
from app.domain.pull_request import PullRequest, PullRequestState, RepoRef
from app.forges.apply import Target
from app.jobs.context import JobContext
from app.jobs.ledger import enqueue
from app.jobs.places import repo_of
from app.logs import get_logger
from app.store.commands import DecisionRecord, record_decision
from app.store.tables import PullRequestRow

REVIEW_ACTIONS = frozenset({"re-review", "rerequested"})
"""Our own button, and GitHub's "Re-run", which means the same."""

SAID: Mapping[str, Command] = {"queue-fixes": Fix(()), "explain": Why()}
"""The buttons that are answered in a comment, with the commands that they are."""

log = get_logger(__name__)


async def handle_check_action(job: JobContext, services: CommandServices) -> None:
    """Start a review if the person may ask for one at this moment; else only note why not. Other
    buttons are answered as the command they stand for.

    A review shows itself by its check; that one is refused is a stored decision and a line in the
    log.
    """
    if job.has("pressed"):
        return
    repo = await repo_of(job)
    number = await _number(job, repo.repository_id)
    action = str(job.payload["action"])
    if number is not None and action in SAID:
        await _answer(job, services, repo, number, SAID[action])
        return
    if number is None or action not in REVIEW_ACTIONS:
        await _note(job, number, "no_pull_request" if number is None else "unknown_action")
        return
    async with services.open_forge() as forge:
        pull = await forge.pull_request(repo, number)
        policy = await policy_of(services, forge, repo, pull)
        person = await who_asks(job, services, forge, repo, policy)
    await _note(job, number, refusal(pull, policy, person))


async def _answer(
    job: JobContext, services: CommandServices, repo: RepoRef, number: int, command: Command
) -> None:
    """Carry the command out, asked by whoever pressed, and say what became of it: once a press."""
    check_run_id = int(job.payload["check_run_id"])
    place = Place(repo, number, check_run_id, Where.CHECK)
    marker = Marker(MarkerKind.COMMENT, f"{place.marker_id}:{job.job_id}")
    async with services.open_forge() as forge:
        if not job.has("answered"):
            asked = await gather(job, services, forge, place, (command,))
            if not asked.person.by_human or asked.policy.mode is Mode.SHADOW:
                await _note(job, number, "shadow" if asked.person.by_human else "not_human")
                return
            await store_answers(job, asked, marker)
        await say(job, forge, Target(repo, number), marker)


def refusal(pull: PullRequest, policy: Policy, person: Person) -> str | None:
    """Why the pressed button does nothing; None: a review starts."""
    if policy.mode is Mode.SHADOW:
        return "shadow"
    return review_refused(person, STATES[pull.state])


async def _number(job: JobContext, repository_id: int) -> int | None:
    """The pull request of the check run. GitHub names none for heads in forks: ours does.

    A head may belong to several pull requests; then those we know of come first.
    """
    named = [int(number) for number in job.payload["numbers"]]
    if len(named) == 1:
        return named[0]
    async with job.store.read() as session:
        known = await _of_head(session, repository_id, str(job.payload["head_sha"]))
    both = [number for number in known if number in named]
    return next(iter((*both, *named, *known)), None)


async def _of_head(session: AsyncSession, repository_id: int, head_sha: str) -> list[int]:
    """The pull requests with this head: open ones first, then the newest."""
    statement = (
        select(PullRequestRow)
        .where(PullRequestRow.repository_id == repository_id, PullRequestRow.head_sha == head_sha)
        .order_by(col(PullRequestRow.number).desc())
    )
    rows = (await session.exec(statement)).all()
    return [
        row.number for row in sorted(rows, key=lambda row: row.state is not PullRequestState.OPEN)
    ]


async def _note(job: JobContext, number: int | None, refused: str | None) -> None:
    """Keep what became of it, together with the review it asks for."""
    now, repository_id = job.clock.now(), int(job.payload["repository_id"])
    login = causes_of(job.payload)[-1].actor.login
    if refused is not None:
        log.info("check action refused", reason=refused, login=login, number=number)
    async with job.store.write() as session:
        await record_decision(
            session,
            DecisionRecord(
                kind="check_action",
                outcome="review" if refused is None else "refused",
                reason=refused or "allowed",
                record={
                    "login": login,
                    "action": job.payload["action"],
                    "check_run": job.payload["check_run_id"],
                    "number": number,
                },
                repository_id=repository_id,
                job_id=job.job_id,
            ),
            now=now,
        )
        if refused is None and number is not None:
            source = f"check:{job.payload['check_run_id']}"
            await enqueue(
                session, review_request(job, repository_id, number, source=source), now=now
            )
        await job.record_in(session, "pressed")
    job.notify()
