"""From a checkout to a commit that passes the repository's own check, or a reason why not."""

from __future__ import annotations

from dataclasses import dataclass

from app.fixer.agent import NO_ANSWER, FixAnswer, FixSession
from app.fixer.facts import Place
from app.fixer.render import commit_message, view_of
from app.fixer.verify import Verified, verify
from app.fixer.workspace import EditableTree
from app.git.worktrees import Checkout, Identity, checkout
from loop_guards import TaskEvent


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn ends here without a push: what that is to the task, and the reason code."""

    event: TaskEvent
    reason: str
    answer: FixAnswer = NO_ANSWER


@dataclass(frozen=True, slots=True)
class Committed:
    """The turn's work as a commit on top of where it started."""

    sha: str
    answer: FixAnswer


async def attempt(session: FixSession, place: Place, identity: Identity) -> Committed | Ended:
    """The agent's work, and once more if the repository's check fails on what it made.

    All of it takes at most the sessions of one agent (DESIGN §3.8): where there is a check, one of
    them is kept for what it says.
    """
    work = session.services.work
    kept = 1 if session.policy.verify_command else 0
    async with checkout(place.mirror, place.start, work) as files:
        done = await _commit(session, files, identity, most=max(1, session.left - kept))
        if isinstance(done, Ended):
            return done
        verified = await _check(session, place, done.sha)
        if verified.passed:
            return done
        if session.left == 0:
            return _unfit(session, done.answer)
        again = await _commit(
            session, files, identity, most=session.left, check_said=verified.output
        )
        if isinstance(again, Ended):
            failed = again.event is TaskEvent.TURN_FAILED
            return again if failed else _unfit(session, done.answer)
        if (await _check(session, place, again.sha)).passed:
            return again
        return _unfit(session, again.answer)


def _unfit(session: FixSession, answer: FixAnswer) -> Ended:
    """What the check refuses is not pushed, and the task is over. That is no empty turn: another
    look at an open proposal would not be about what was made."""
    proposed = session.facts.fix_number is not None
    event = TaskEvent.TURN_FAILED if proposed else TaskEvent.TURN_EMPTY
    return Ended(event, "verify_failed", answer)


async def _commit(
    session: FixSession, files: Checkout, identity: Identity, *, most: int, check_said: str = ""
) -> Committed | Ended:
    answer = await session.work(EditableTree(files.path), most=most, check_said=check_said)
    if answer.failed is not None:
        return Ended(TaskEvent.TURN_FAILED, f"fixer_{answer.failed}", answer)
    message = commit_message(view_of(session.facts, answer))
    sha = await files.commit_all(message, identity)
    if sha is None:
        return Ended(TaskEvent.TURN_EMPTY, "nothing_changed", answer)
    return Committed(sha, answer)


async def _check(session: FixSession, place: Place, sha: str) -> Verified:
    """Run the check on a checkout of its own: what it leaves behind is never committed."""
    command = session.policy.verify_command
    if not command:
        return Verified(True, "")
    async with checkout(place.mirror, sha, session.services.work) as files:
        return await verify(command, files.path)
