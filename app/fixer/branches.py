"""May the task's branch be worked on? Pure: what is known of it in, a reason code or None out.

A branch is never forced over what somebody else pushed.
"""

from __future__ import annotations

from enum import StrEnum


class Lost(StrEnum):
    """Why a task's branch can't be worked on. TAKEN: it is somebody else's. MOVED: somebody pushed
    to it while the fixer worked."""

    TAKEN = "branch_taken"
    DELETED = "branch_deleted"
    MOVED = "branch_moved"


def before_turn(*, proposed: bool, tip: str | None) -> Lost | None:
    """`tip` is where the branch stands on the forge; `proposed`: there is a fix pull request.

    Before our first push there is no branch of that name, or it is not ours to build on.
    """
    if proposed:
        return Lost.DELETED if tip is None else None
    return Lost.TAKEN if tip is not None else None


def before_push(*, proposed: bool, tip: str | None, at: str | None, sha: str) -> Lost | None:
    """`tip` is where the turn began, `at` where the branch stands now, `sha` the turn's commit."""
    if at in (tip, sha):
        return None
    if not proposed:
        return Lost.TAKEN
    return Lost.DELETED if at is None else Lost.MOVED
