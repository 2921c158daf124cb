"""The kinds of work the ledger knows, and the small facts a job carries about what caused it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from app.domain.pull_request import Account, AccountKind


class JobKind(StrEnum):
    """One kind of job; a worker is given one story per kind.

    `SYNC_INSTALLATION` asks GitHub what an installation (None: any) has that we do not know of.
    """

    REVIEW_PULL_REQUEST = "review_pull_request"
    CLOSE_PULL_REQUEST = "close_pull_request"
    RUN_FIX_TASK = "run_fix_task"
    HANDLE_COMMENT = "handle_comment"
    HANDLE_CHECK_ACTION = "handle_check_action"
    SYNC_INSTALLATION = "sync_installation"


class JobState(StrEnum):
    """The life of a job. `QUEUED` and `RUNNING` are live; the others never change again."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"

    @property
    def is_live(self) -> bool:
        return self in LIVE_JOB_STATES


LIVE_JOB_STATES = frozenset({JobState.QUEUED, JobState.RUNNING})


class AppRole(StrEnum):
    """Which of our two GitHub Apps: the one that judges or the one that fixes."""

    REVIEWER = "reviewer"
    FIXER = "fixer"


@dataclass(frozen=True, slots=True)
class Cause:
    """One event that asked for a job: what happened, by whom, when, in which delivery.

    A job that supersedes others inherits their causes, so a human's push is never forgotten
    because a bot pushed a second later. `through_app` is the id of the App that acted in the
    person's name, if any.
    """

    action: str
    actor: Account
    at: datetime
    delivery: str
    through_app: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "actor_id": self.actor.id,
            "actor_login": self.actor.login,
            "actor_kind": self.actor.kind.value,
            "at": self.at.isoformat(),
            "delivery": self.delivery,
            "through_app": self.through_app,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cause:
        """Raises KeyError or ValueError on anything `to_json` did not write."""
        return cls(
            action=data["action"],
            actor=Account(
                id=data["actor_id"],
                login=data["actor_login"],
                kind=AccountKind(data["actor_kind"]),
            ),
            at=datetime.fromisoformat(data["at"]),
            delivery=data["delivery"],
            through_app=data["through_app"],
        )


def causes_of(payload: Mapping[str, Any]) -> tuple[Cause, ...]:
    """Every event that asked for a job, those of superseded jobs included."""
    return tuple(Cause.from_json(item) for item in payload.get("causes", ()))
