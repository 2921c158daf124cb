"""Who acted, and what the act means for machine-caused rounds. DESIGN §3.0 and §3.5."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loop_guards.decisions import Decision, sealed, values
from loop_guards.tables import all_that_hold


class ActorOutcome(StrEnum):
    HUMAN = "human"
    MACHINE = "machine"


class ActorReason(StrEnum):
    """Why an act counts as a machine's, in the order asked; PERSON when nothing says so."""

    POSTED_BY_US = "posted_by_us"
    NOT_A_USER = "not_a_user"
    MACHINE_ACCOUNT = "machine_account"
    THROUGH_APP = "through_app"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class ActorFacts:
    """An act's author. `is_user`: the forge's account type is User. `machine_account`: the policy
    or we know that a machine drives it. `through_app`: an App acted in its name. `posted_by_us`:
    the act is one of ours, by its id."""

    is_user: bool
    machine_account: bool = False
    through_app: bool = False
    posted_by_us: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorDecision(Decision):
    """Whose act it is."""

    @property
    def is_human(self) -> bool:
        """Whether a person acted."""
        return self.outcome == ActorOutcome.HUMAN


def judge_actor(facts: ActorFacts) -> ActorDecision:
    """Human only if nothing at all speaks for a machine."""
    questions = (
        (ActorReason.POSTED_BY_US, facts.posted_by_us),
        (ActorReason.NOT_A_USER, not facts.is_user),
        (ActorReason.MACHINE_ACCOUNT, facts.machine_account),
        (ActorReason.THROUGH_APP, facts.through_app),
    )
    held, trace = all_that_hold(questions)
    return ActorDecision(
        outcome=ActorOutcome.MACHINE if held else ActorOutcome.HUMAN,
        reason=held[0] if held else ActorReason.PERSON,
        reasons=held or (ActorReason.PERSON,),
        compared=values(
            is_user=facts.is_user,
            machine_account=facts.machine_account,
            through_app=facts.through_app,
            posted_by_us=facts.posted_by_us,
        ),
        trace=trace,
        seal=sealed(),
    )


class ActKind(StrEnum):
    """What can happen to a pull request."""

    OPEN = "open"
    PUSH = "push"
    REOPEN = "reopen"
    READY = "ready"
    BASE_CHANGE = "base_change"
    COMMAND = "command"
    RESUME = "resume"
    COMMENT = "comment"
    LABEL = "label"
    REVIEW = "review"


_STARTS = frozenset(
    {
        ActKind.OPEN,
        ActKind.PUSH,
        ActKind.REOPEN,
        ActKind.READY,
        ActKind.BASE_CHANGE,
        ActKind.COMMAND,
    }
)
_RESETS = frozenset({ActKind.OPEN, ActKind.PUSH, ActKind.COMMAND, ActKind.RESUME})


def asks_for_review(kind: ActKind) -> bool:
    """Whether an act of this kind may start a review; nothing else does (DESIGN §2.3)."""
    return kind in _STARTS


def machine_rounds_after_act(machine_rounds: int, kind: ActKind, *, by_human: bool) -> int:
    """Machine-caused rounds since the last human push, open, command or resume, after this act.

    Comments, labels and reviews change nothing, whoever wrote them: two machines that talk would
    else keep each other going.
    """
    return 0 if by_human and kind in _RESETS else machine_rounds


def machine_rounds_after_call(machine_rounds: int, *, machine_caused: bool) -> int:
    """The same count after a run made its first model call: a machine's round counts from then."""
    return machine_rounds + 1 if machine_caused else machine_rounds
