"""Findings that were fixed and are back: a bot broke it, or the reviewer changed its mind."""

from __future__ import annotations

from dataclasses import dataclass

from app.domain.diff import Diff
from app.domain.findings import Finding
from app.errors import GitError
from app.git.mirror import DiffTooLarge, Repository
from app.review.facts import ReviewFacts
from app.review.history import Turn, bot_pushed_since
from app.review.judge import Judgement, NewFinding
from app.review.source import Source
from app.review.traces import cites, touches
from app.review.verdict import TaskView
from loop_guards import Limits, ReturnDecision, ReturnFacts, judge_return


@dataclass(frozen=True, slots=True)
class Returned:
    """A finding of the ledger that is reported again. See `ReturnFacts`."""

    finding_id: int
    bot_touched: bool


async def find_returns(
    facts: ReviewFacts, source: Source, judgement: Judgement
) -> tuple[Returned, ...]:
    """Which findings of the task's fix came back in this round. None elsewhere."""
    if facts.task is None or facts.turn is None:
        return ()
    return tuple(
        [
            Returned(
                facts.task.fixed[item.fingerprint].id,
                await _bot_touched(facts.task, facts.turn, source, item),
            )
            for item in judgement.new
            if item.fingerprint in facts.task.fixed
        ]
    )


async def _bot_touched(task: TaskView, turn: Turn, source: Source, item: NewFinding) -> bool:
    before = task.fixed[item.fingerprint]
    if not bot_pushed_since(before.sha, task.looks, turn.now):
        return False
    diff = await diff_since(source.repository, before.sha, source.head)
    if diff is None:
        return False
    now = item.reported.location
    files = () if now.path is None else (now.path, *item.reported.also)
    return touches(diff, before.location, now) or cites(item.reported.evidence, files, diff)


async def changes_shown(
    source: Source, findings: tuple[Finding, ...], task: TaskView | None
) -> dict[str, Diff]:
    """Per short id: what changed since a finding was handed off to the task, or raised on its fix.

    Empty where there is no task. The fix's own diff is what changed since the hand-off; it also
    holds what the fix brought in, which is no evidence against that.
    """
    shown: dict[str, Diff] = {}
    if task is None:
        return shown
    for finding in findings:
        if finding.id in task.mirrored:
            shown[finding.short_id] = source.diff
        elif diff := await diff_since(source.repository, finding.first_seen_sha, source.head):
            shown[finding.short_id] = diff
    return shown


async def diff_since(repository: Repository, sha: str, head: str) -> Diff | None:
    """The change between two commits; None if it can't be seen: the first was rebased away and is
    gone, or the change is too large to be read. What nobody sees is evidence of nothing."""
    try:
        return await repository.diff(sha, head)
    except DiffTooLarge:
        return None
    except GitError:
        if await repository.has(sha):
            raise
        return None


def judge_returns(
    returned: tuple[Returned, ...], task: TaskView, limits: Limits
) -> tuple[tuple[ReturnDecision, int], ...]:
    """What each return means, with its finding's id."""
    return tuple(
        (
            judge_return(
                ReturnFacts(
                    was_blocking=item.finding_id in task.ever_blocked,
                    bot_touched=item.bot_touched,
                    flips=task.flips.get(item.finding_id, 0),
                ),
                limits,
            ),
            item.finding_id,
        )
        for item in returned
    )
