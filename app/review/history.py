"""What a fix task's earlier rounds mean for the one under way: rows to the guards' facts.

Only `runs_of_task` and `flips_of` read; everything else is pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.coverage import Coverage
from app.domain.runs import RunState
from app.store.tables import DecisionRow, FindingRow, ReviewRun
from loop_guards import ReturnReason, RoundRecord

RETURN = "return"
"""The kind under which `judge_return`'s answers are kept."""


@dataclass(frozen=True, slots=True)
class Look:
    """A finished round since the latest resume: what it looked at, and what blocked after it.

    `machine`: no person caused it.
    """

    head: str
    merge_base: str | None = None
    patch_id: str = ""
    blocking: frozenset[int] = frozenset()
    machine: bool = True


@dataclass(frozen=True, slots=True)
class NewHead:
    """The commit that a round is about to look at, and how it came there.

    `patch_id` is "" where the change is empty. `by_person`: a person pushed it. `idle_turn`: the
    turn before this round ended without any change.
    """

    sha: str
    merge_base: str
    patch_id: str = ""
    by_person: bool = False
    idle_turn: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What was between the last look and this one, as `AfterRoundFacts` asks for it."""

    now: NewHead
    touched: bool = True
    known_patch: bool = False


async def runs_of_task(session: AsyncSession, task_id: int) -> Sequence[ReviewRun]:
    """Every run of a fix task, on whichever of its pull requests and heads, oldest first."""
    statement = (
        select(ReviewRun).where(ReviewRun.fix_task_id == task_id).order_by(col(ReviewRun.id))
    )
    return (await session.exec(statement)).all()


async def flips_of(session: AsyncSession, task_id: int, resumes: int) -> Mapping[int, int]:
    """How often each finding came back without a bot's change, since the latest resume."""
    statement = (
        select(DecisionRow.finding_id)
        .join(ReviewRun, col(ReviewRun.id) == col(DecisionRow.run_id))
        .where(
            DecisionRow.kind == RETURN,
            DecisionRow.fix_task_id == task_id,
            col(DecisionRow.reason).in_((ReturnReason.FLIP, ReturnReason.UNSTABLE_REVIEW)),
            ReviewRun.task_resumes >= resumes,
        )
    )
    found = (await session.exec(statement)).all()
    return Counter(number for number in found if number is not None)


def records_of(runs: Iterable[ReviewRun]) -> tuple[RoundRecord, ...]:
    """The rounds as the guards count them. A run that did not finish said nothing."""
    return tuple(
        RoundRecord(
            head=run.head_sha,
            called=run.charged_at is not None,
            published=run.review_id is not None,
            resumes=run.task_resumes,
            blocking=frozenset(run.blocking) if run.state is RunState.DONE else None,
            coverage_full=was_whole(run),
        )
        for run in runs
    )


def was_whole(run: ReviewRun) -> bool:
    """Whether a finished run covered everything it should, by everyone who should."""
    return Coverage.from_json(run.coverage).is_full and not run.incomplete


def files_of(row: FindingRow) -> frozenset[str]:
    """The files that a finding names."""
    return frozenset(name for name in (row.path, *row.also) if name is not None)


def looks_of(runs: Iterable[ReviewRun], resumes: int) -> tuple[Look, ...]:
    """The finished rounds since the latest resume, oldest first."""
    return tuple(
        Look(
            head=run.head_sha,
            merge_base=run.merge_base_sha,
            patch_id=run.patch_id or "",
            blocking=frozenset(run.blocking),
            machine=run.machine_caused,
        )
        for run in runs
        if run.state is RunState.DONE and run.task_resumes >= resumes
    )


def touched(
    looks: Sequence[Look],
    now: NewHead,
    changed: Collection[str] | None,
    files: Mapping[int, frozenset[str]],
) -> bool:
    """Whether the turn before this round changed a file of what blocked before it.

    `changed` are the paths that differ from the last look's head, None if that commit is gone:
    what nobody can see is held against nobody. `files` has those of each finding; one that names
    none is touched by any change. Without a turn between, or with a person's push, True.
    """
    if not looks or not looks[-1].blocking:
        return True
    last = looks[-1]
    if last.head == now.sha:
        return not now.idle_turn
    if now.by_person or changed is None:
        return True
    blocked = [files.get(number, frozenset()) for number in last.blocking]
    return any(not names.isdisjoint(changed) if names else bool(changed) for names in blocked)


def known_patch(looks: Sequence[Look], now: NewHead) -> bool:
    """Whether a bot pushed what was judged before, as another commit.

    The last look's patch on a base that moved is none: that push only takes the base in.
    """
    if not looks or now.by_person or not now.patch_id or looks[-1].head == now.sha:
        return False
    last = looks[-1]
    if last.patch_id == now.patch_id and last.merge_base != now.merge_base:
        return False
    return any(look.patch_id == now.patch_id and look.head != now.sha for look in looks)


def bot_pushed_since(head: str, looks: Sequence[Look], now: NewHead) -> bool:
    """Whether a bot pushed between a commit that was looked at and this one.

    A commit that no look since the latest resume saw is older than all of them.
    """
    seen = any(look.head == head for look in looks)
    later = dropwhile(lambda look: seen and look.head != head, looks)
    if any(look.machine and look.head != head for look in later):
        return True
    arrived = not looks or looks[-1].head != now.sha
    return arrived and not now.by_person and head != now.sha
