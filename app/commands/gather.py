"""Turns a comment into facts: who asks, and what they may do now."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.commands.facts import Asked, Person
from app.commands.grammar import Command, Stop
from app.commands.services import CommandServices
from app.domain.bots import Authorship, bot_signal, is_human_act
from app.domain.jobs import causes_of
from app.domain.policy import Mode, Policy
from app.domain.pull_request import PullRequest, PullRequestState, RepoRef
from app.errors import ForgeError, GitError
from app.forges.port import Forge
from app.git.process import Remote
from app.jobs.context import JobContext
from app.policy.read import read_policy
from app.store.commands import BotFact
from app.store.queries import pull_request, repository
from loop_guards import PullState

STATES = {
    PullRequestState.OPEN: PullState.OPEN,
    PullRequestState.CLOSED: PullState.CLOSED,
    PullRequestState.MERGED: PullState.MERGED,
}
"""The forge's states in the guards' words."""


class Where(StrEnum):
    """Where on a pull request somebody speaks; each has its own numbers. A review takes no
    reactions. A button of a check says one command."""

    COMMENT = "comment"
    THREAD = "thread"
    REVIEW = "review"
    CHECK = "check"


@dataclass(frozen=True, slots=True)
class Place:
    """The comment: on what, and which one."""

    repo: RepoRef
    number: int
    comment_id: int
    where: Where = Where.COMMENT

    @classmethod
    def of(cls, job: JobContext, repo: RepoRef) -> Place:
        payload = job.payload
        where = Where(payload.get("where", Where.COMMENT))
        return cls(repo, int(payload["number"]), int(payload["comment_id"]), where)

    @property
    def source(self) -> str:
        """How the ledger names the comment."""
        return f"{self.where}:{self.comment_id}"

    @property
    def marker_id(self) -> str:
        """What marks our answer to it."""
        plain = self.where is Where.COMMENT
        return f"command:{self.comment_id}" if plain else f"command:{self.source}"


async def gather(
    job: JobContext,
    services: CommandServices,
    forge: Forge,
    place: Place,
    commands: tuple[Command, ...],
) -> Asked:
    """Who asks for what."""
    repo = place.repo
    pull = await forge.pull_request(repo, place.number)
    policy = await policy_of(services, forge, repo, pull)
    return Asked(
        now=job.clock.now(),
        repo=repo,
        pull_request=pull,
        comment_id=place.comment_id,
        source=place.source,
        person=await who_asks(job, services, forge, repo, policy),
        policy=policy,
        commands=commands,
        bot=await _bot(job, services, forge, repo, pull, policy) if Stop() in commands else None,
    )


async def who_asks(
    job: JobContext, services: CommandServices, forge: Forge, repo: RepoRef, policy: Policy
) -> Person:
    """Whose act the job answers. The permission is the forge's answer of this moment.

    An error that a pause may cure is raised, for the job to be tried again; after any other one
    nobody knows what the person may do.
    """
    cause = causes_of(job.payload)[-1]
    by_human = is_human_act(cause, policy.machine_accounts, services.our_logins)
    can_write = unknown = False
    if by_human:
        try:
            can_write = (await forge.permission(repo, cause.actor.login)).can_write
        except ForgeError as error:
            if error.retry_after is not None:
                raise
            unknown = True
    return Person(cause.actor, by_human, can_write, cause.at, unknown)


async def policy_of(
    services: CommandServices, forge: Forge, repo: RepoRef, pull: PullRequest
) -> Policy:
    """The policy on the default branch of now."""
    clone = await forge.clone_remote(repo, write=False)
    mirror = await services.mirrors.ready(
        repo.repository_id, Remote(clone.url, clone.token), branches=(pull.default_branch,)
    )
    return (await read_policy(mirror, services.mirrors.branch_ref(pull.default_branch))).policy


async def last_policy(job: JobContext, services: CommandServices, place: Place) -> Policy | None:
    """The policy as this machine saw it last, told at once; None if it never did."""
    async with job.store.read() as session:
        row = await repository(session, place.repo.repository_id)
    mirror = await services.mirrors.here(place.repo.repository_id)
    if mirror is None or row is None or not row.default_branch:
        return None
    try:
        found = await read_policy(mirror, services.mirrors.branch_ref(row.default_branch))
    except GitError:
        return None
    return found.policy


def answers(job: JobContext, services: CommandServices, policy: Policy) -> bool:
    """Whether the comment gets a sign or an answer at all: a person's, where we do not only look
    on."""
    cause = causes_of(job.payload)[-1]
    by_human = is_human_act(cause, policy.machine_accounts, services.our_logins)
    return by_human and policy.mode is not Mode.SHADOW


async def _bot(
    job: JobContext,
    services: CommandServices,
    forge: Forge,
    repo: RepoRef,
    pull: PullRequest,
    policy: Policy,
) -> BotFact | None:
    """Whether a machine wrote a pull request that no review has looked at yet: that is written
    once, when the ledger first hears of it, so all signs are asked for."""
    async with job.store.read() as session:
        if await pull_request(session, repo.repository_id, pull.number) is not None:
            return None
    clone = await forge.clone_remote(repo, write=False)
    mirror = await services.mirrors.ready(
        repo.repository_id,
        Remote(clone.url, clone.token),
        commits=(pull.base_sha, pull.head_sha),
    )
    signal = bot_signal(
        Authorship(
            author=pull.author,
            head_ref=pull.head_ref,
            co_authors=await mirror.co_authors(pull.base_sha, pull.head_sha),
            our_logins=services.our_logins,
            added=frozenset(policy.bots.add),
            exempted=frozenset(policy.bots.exempt),
        )
    )
    return BotFact(signal is not None, signal.value if signal else None)
