"""Heads that a person approved by force. Each is a decision in the ledger, attributed and counted.

Before the first review there is no row of the pull request, so it goes by repository and number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from app.store.tables import DecisionRow
from loop_guards import GlassDecision, GlassFacts, GlassOutcome, answer_glass

GLASS = "break_glass"
"""The kind of these decisions."""


@dataclass(frozen=True, slots=True)
class Forced:
    """A forced approval: the guards' answer to what was asked then, who gave it and why.

    `why` is what the person said, untrusted.
    """

    decision: GlassDecision
    login: str
    why: str


async def forced_approval(
    session: AsyncSession, repository_id: int, number: int, head_sha: str
) -> Forced | None:
    """The latest forced approval of this very head, if there is one. The guards are asked again:
    a decision itself is never restored."""
    found = [
        row
        for row in await forced_approvals(session, repository_id, number)
        if row.record["head_sha"] == head_sha
    ]
    if not found:
        return None
    record = found[-1].record
    decision = answer_glass(GlassFacts(**record["compared"]))
    return Forced(decision, str(record["login"]), str(record["why"])) if decision.accepted else None


async def forced_approvals(
    session: AsyncSession, repository_id: int, number: int
) -> Sequence[DecisionRow]:
    """Every forced approval of the pull request, of whichever head, oldest first."""
    statement = (
        select(DecisionRow)
        .where(
            DecisionRow.kind == GLASS,
            DecisionRow.repository_id == repository_id,
            DecisionRow.outcome == GlassOutcome.FORCED,
        )
        .order_by(col(DecisionRow.id))
    )
    rows = (await session.exec(statement)).all()
    return [row for row in rows if row.record.get("number") == number]
