"""What must never happen, by name. A mutant of the guards is caught when one of these is raised."""

from __future__ import annotations

from dataclasses import dataclass

INVARIANTS = {
    "merge_first": "Nothing is handed off before the merge, and without a merge never.",
    "human_order_needed": "Findings of bots, fixes, verify runs or after the merge need an order.",
    "one_automatic_task": "At most one automatic task per finding.",
    "one_live_task": "At most one live task per finding.",
    "tasks_by_orders": "A finding's tasks are at most one more than its orders.",
    "one_task_per_file": "One plan makes one task per file, and one task at a time holds a path.",
    "lease_for_a_reason": "A task waits only for a path that another one works on.",
    "order_ends_once": "Every order ends in exactly one way, and not before it can.",
    "newer_order_kept": "A close discards no order that was given after it.",
    "allowance": "Rounds and turns started never exceed what humans granted.",
    "halted_stays_halted": "Nothing machine-caused after a stop or an escalation, until a resume.",
    "blocking_stays": "A blocking finding is fixed on evidence, dismissed or unqueued by a human.",
    "only_task_blocks": "Only the task's findings and new criticals of its own diff block.",
    "approves_what_it_saw": "A round approves no head that it did not look at.",
    "resume_forgets": "A resumed task is not stalled by what it did before.",
    "machines_command_nothing": "A bot can't queue, unqueue, stop, resume or dismiss.",
    "no_deadlock": "A fixer that fixes and a reviewer that raises no new critical end in approval.",
    "ping_pong": "At most the cap of machine-caused rounds since a human's act.",
    "one_action_per_thread": "Every open thread gets one action a round, and few enough replies.",
    "purse": "What a lineage spends never exceeds its purse.",
    "verify_cycles": "A task's verify runs never exceed its cycles.",
    "halts": "No cycle of acts costs anything: the longest path is finite.",
    "bound": "No path costs more than the bound of DESIGN §3.8.",
}
"""Every invariant with the sentence it stands for."""


@dataclass
class Violated(Exception):
    """An invariant does not hold. Whoever knows how the state was reached adds the `trace`."""

    name: str
    what: str
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        steps = "\n  ".join(self.trace)
        return f"{self.name}: {self.what}\n  {INVARIANTS[self.name]}\n  {steps}"


def require(holds: bool, name: str, what: str = "") -> None:
    """Raise Violated(name) unless it holds."""
    if not holds:
        assert name in INVARIANTS
        raise Violated(name, what)
