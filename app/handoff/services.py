"""What the handoff story needs from outside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from app.forges.port import Forge
from app.git.mirror import Mirrors
from loop_guards import ClosePlan, plan_merged

PlanMerged = Callable[..., ClosePlan]
"""The guards' plan for a merge: the signature of `loop_guards.plan_merged`."""


@dataclass(frozen=True, slots=True)
class HandoffServices:
    """`our_logins` are the bot logins of both our Apps."""

    open_forge: Callable[[], AbstractAsyncContextManager[Forge]]
    mirrors: Mirrors
    our_logins: frozenset[str]
    plan: PlanMerged = plan_merged
