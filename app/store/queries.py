"""Questions about stored facts that more than one story asks. Reading changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.domain.jobs import AppRole
from app.domain.pull_request import RepoRef
from app.domain.runs import RunState
from app.domain.tasks import LIVE_TASK_STATES, FixTaskState, OrderState
from app.store.tables import (
    DecisionRow,
    FindingRow,
    FixTask,
    FixTaskFinding,
    Order,
    Publication,
    PullRequestRow,
    Repository,
    ReviewRun,
)

_LEASE_STATES = tuple(state for state in FixTaskState if state.holds_lease)


async def repository(session: AsyncSession, repository_id: int) -> Repository | None:
    """The repository by GitHub's id, also if the App was taken off it."""
    return await session.get(Repository, repository_id)


async def repositories_of(
    session: AsyncSession, installation_id: int, *, app: AppRole
) -> Sequence[Repository]:
    """The repositories that an installation of this App is on, also removed ones."""
    column = (
        Repository.installation_id if app is AppRole.REVIEWER else Repository.fixer_installation_id
    )
    statement = select(Repository).where(col(column) == installation_id)
    return (await session.exec(statement.order_by(col(Repository.id)))).all()


def as_repo_ref(row: Repository) -> RepoRef:
    """The repository as the forge port names it, within the reviewer's installation."""
    return RepoRef(
        installation_id=row.installation_id, repository_id=row.id, owner=row.owner, name=row.name
    )


async def pull_request(
    session: AsyncSession, repository_id: int, number: int
) -> PullRequestRow | None:
    """The pull request by its number."""
    statement = select(PullRequestRow).where(
        PullRequestRow.repository_id == repository_id, PullRequestRow.number == number
    )
    return (await session.exec(statement)).one_or_none()


async def unfinished_runs(session: AsyncSession, pull_request_id: int) -> Sequence[ReviewRun]:
    """The review runs of a pull request that are queued or running, oldest first."""
    statement = (
        select(ReviewRun)
        .where(
            ReviewRun.pull_request_id == pull_request_id,
            col(ReviewRun.state).in_((RunState.QUEUED, RunState.RUNNING)),
        )
        .order_by(col(ReviewRun.id))
    )
    return (await session.exec(statement)).all()


async def latest_run(
    session: AsyncSession, pull_request_id: int, *, state: RunState = RunState.DONE
) -> ReviewRun | None:
    """The newest run of a pull request that ended (or is) in this state."""
    statement = (
        select(ReviewRun)
        .where(ReviewRun.pull_request_id == pull_request_id, ReviewRun.state == state)
        .order_by(col(ReviewRun.id).desc())
        .limit(1)
    )
    return (await session.exec(statement)).one_or_none()


async def live_task_of(session: AsyncSession, finding_id: int) -> FixTask | None:
    """The live fix task that covers the finding, if any; by design there is at most one."""
    statement = (
        select(FixTask)
        .join(FixTaskFinding, col(FixTaskFinding.fix_task_id) == col(FixTask.id))
        .where(
            FixTaskFinding.finding_id == finding_id,
            col(FixTaskFinding.left_at).is_(None),
            col(FixTask.state).in_(LIVE_TASK_STATES),
        )
        .order_by(col(FixTask.id))
        .limit(1)
    )
    return (await session.exec(statement)).one_or_none()


async def task_findings(
    session: AsyncSession, fix_task_id: int
) -> Sequence[tuple[FixTaskFinding, FindingRow]]:
    """What a task covers now: its link rows with the source pull request's findings."""
    statement = (
        select(FixTaskFinding, FindingRow)
        .join(FindingRow, col(FindingRow.id) == col(FixTaskFinding.finding_id))
        .where(FixTaskFinding.fix_task_id == fix_task_id, col(FixTaskFinding.left_at).is_(None))
        .order_by(col(FindingRow.number))
    )
    return (await session.exec(statement)).all()


async def lease_holders(
    session: AsyncSession, repository_id: int, base_ref: str, paths: Collection[str]
) -> Sequence[FixTask]:
    """The tasks that hold a lease on any of these paths of this base, oldest first."""
    statement = (
        select(FixTask)
        .where(
            FixTask.repository_id == repository_id,
            FixTask.base_ref == base_ref,
            col(FixTask.state).in_(_LEASE_STATES),
        )
        .order_by(col(FixTask.id))
    )
    wanted = set(paths)
    return [task for task in (await session.exec(statement)).all() if wanted & set(task.paths)]


async def pending_orders(session: AsyncSession, pull_request_id: int) -> Sequence[Order]:
    """The orders for findings of this pull request that nobody settled yet, oldest first."""
    statement = (
        select(Order)
        .join(FindingRow, col(FindingRow.id) == col(Order.finding_id))
        .where(FindingRow.pull_request_id == pull_request_id, Order.state == OrderState.PENDING)
        .order_by(col(Order.id))
    )
    return (await session.exec(statement)).all()


async def publication(session: AsyncSession, marker: str) -> Publication | None:
    """The effect with this marker, whether prepared or done."""
    return (
        await session.exec(select(Publication).where(Publication.marker == marker))
    ).one_or_none()


async def decisions_about(session: AsyncSession, pull_request_id: int) -> Sequence[DecisionRow]:
    """All decisions about a pull request, oldest first."""
    statement = (
        select(DecisionRow)
        .where(DecisionRow.pull_request_id == pull_request_id)
        .order_by(col(DecisionRow.id))
    )
    return (await session.exec(statement)).all()
