# ruff: noqa: T201 - a table that is printed; our own interpreter runs our own module
"""The proof can fail: the guards with one rule taken away, and the invariant that notices.

`python -m tests.loop_guards.model.mutants` applies them one by one and prints the table.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import loop_guards

PACKAGE = Path(loop_guards.__file__).parent


@dataclass(frozen=True, slots=True)
class Mutant:
    """In `file`, `old` (which stands there once) becomes `new`. `world` is the letter of the world
    that shows it, `only` the words of its arrangement, `invariant` the name of what breaks."""

    name: str
    file: str
    old: str
    new: str
    world: str
    only: str
    invariant: str


MUTANTS = (
    Mutant(
        "no bot check",
        "handoff.py",
        "if facts.author_is_bot or facts.is_fix_pr:",
        "if facts.is_fix_pr:",
        "f",
        "a bot's",
        "human_order_needed",
    ),
    Mutant(
        "no verify check",
        "handoff.py",
        "verify = finding.origin is Origin.VERIFY",
        "verify = False",
        "f",
        "verify and post-merge",
        "human_order_needed",
    ),
    Mutant(
        "no merged check",
        "handoff.py",
        "return None if facts.merged else (HandoffOutcome.NO, HandoffReason.NOT_MERGED)",
        "return None",
        "b",
        "order+resume",
        "merge_first",
    ),
    Mutant(
        "no live-task check",
        "handoff.py",
        "if state.is_live or finding.pending is None:",
        "if not state.is_live and finding.pending is None:",
        "b",
        "order+order",
        "one_live_task",
    ),
    Mutant(
        "a deferred finding is handed off a second time",
        "handoff.py",
        "if state.is_live or finding.pending is None:",
        "if state.is_live:",
        "c",
        "all overrides",
        "one_automatic_task",
    ),
    Mutant(
        "coalesce per finding",
        "coalesce.py",
        'groups.setdefault(root(item.finding.path or ""), [])',
        "groups.setdefault(str(item.finding.id), [])",
        "f",
        "verify under a stop",
        "one_task_per_file",
    ),
    Mutant(
        "new warnings block",
        "convergence.py",
        "return finding.severity_when_raised is Severity.CRITICAL",
        "return finding.severity_when_raised.at_least(Severity.WARNING)",
        "f",
        "a bot's",
        "only_task_blocks",
    ),
    Mutant(
        "carried findings of other tasks block",
        "convergence.py",
        "if not (finding.of_task or raised_here):",
        "if finding.of_task is None:",
        "a",
        "a fix of both files",
        "only_task_blocks",
    ),
    Mutant(
        "an introduced critical stops blocking once carried",
        "convergence.py",
        "return finding.severity_when_raised is Severity.CRITICAL",
        "return False",
        "f",
        "a bot's",
        "blocking_stays",
    ),
    Mutant(
        "round charged at publish",
        "rounds.py",
        "return sum(record.called for record in records)",
        "return sum(record.published for record in records)",
        "d",
        "leases and a resume",
        "allowance",
    ),
    Mutant(
        "counter keyed to the head",
        "rounds.py",
        "return sum(record.called for record in records)",
        "held = [*records]\n    return sum(r.called and r.head == held[-1].head for r in held)",
        "b",
        "order+push_fix",
        "allowance",
    ),
    Mutant(
        "turns cost nothing",
        "progress.py",
        "used=max(facts.rounds_started, facts.turns_begun)",
        "used=facts.rounds_started",
        "b",
        "resume+resume",
        "allowance",
    ),
    Mutant(
        "key without batch",
        "coalesce.py",
        'key=f"{facts.repository}:{facts.merge_commit}:{part.own[0]}:{batch}"',
        'key=f"{facts.repository}:{facts.merge_commit}:{part.own[0]}"',
        "b",
        "order+order",
        "order_ends_once",
    ),
    Mutant(
        "lease kept on escalation",
        "facts.py",
        "self not in (TaskState.WAITING, TaskState.ESCALATED)",
        "self is not TaskState.WAITING",
        "d",
        "leases and a resume",
        "lease_for_a_reason",
    ),
    Mutant(
        "a bot may queue",
        "orders.py",
        "(not facts.by_human, refused, OrderReason.NOT_HUMAN),",
        "",
        "b",
        "order+order",
        "machines_command_nothing",
    ),
    Mutant(
        "an order used twice",
        "facts.py",
        "return None if self.order is None or self.order.ended else self.order",
        "return self.order",
        "b",
        "order+order",
        "order_ends_once",
    ),
    Mutant(
        "comments reset ping-pong",
        "actors.py",
        "return 0 if by_human and kind in _RESETS else machine_rounds",
        "return 0 if (by_human and kind in _RESETS) or kind is ActKind.COMMENT else machine_rounds",
        "e",
        "one pull request",
        "ping_pong",
    ),
    Mutant(
        "resume keeps stall memory",
        "rounds.py",
        "if record.resumes >= resumes and record.blocking is not None",
        "if record.blocking is not None",
        "b",
        "resume_task+resume_task",
        "resume_forgets",
    ),
    Mutant(
        "resume gives the full allowance",
        "progress.py",
        "max(0, resumes) * limits.resume_rounds",
        "max(0, resumes) * limits.max_review_iterations",
        "b",
        "resume_task+resume_task",
        "allowance",
    ),
    Mutant(
        "a close discards newer orders",
        "closing.py",
        "if still_closed and instant(order.at) < closed",
        "if still_closed",
        "c",
        "overrides and faults",
        "newer_order_kept",
    ),
    Mutant(
        "a stale look approves",
        "progress.py",
        "and not self.unavailable and self.newest_head",
        "and not self.unavailable",
        "c",
        "overrides and faults",
        "approves_what_it_saw",
    ),
    Mutant(
        "a stop is not asked about",
        "progress.py",
        "(StartReason.STOPPED, facts.stopped),",
        "(StartReason.STOPPED, False),",
        "b",
        "stop+stop",
        "halted_stays_halted",
    ),
    Mutant(
        "words alone fix",
        "evidence.py",
        "elif not changed:",
        "elif changed is None:",
        "b",
        "order+order",
        "blocking_stays",
    ),
    Mutant(
        "no reservation",
        "progress.py",
        "(taken + self.worst_case).overdraws(",
        "taken.overdraws(",
        "g",
        "",
        "purse",
    ),
    Mutant(
        "nothing is ever fixed",
        "evidence.py",
        "outcome, reason = FixedOutcome.FIXED, FixedReason.ON_EVIDENCE",
        "outcome, reason = FixedOutcome.OPEN, FixedReason.ON_EVIDENCE",
        "b",
        "order+order",
        "no_deadlock",
    ),
    Mutant(
        "one task too many",
        "closing.py",
        "sorted(automatic, key=worst)[room:]",
        "sorted(automatic, key=worst)[room + 1 :]",
        "f",
        "more files than tasks",
        "bound",
    ),
    Mutant(
        "one verify run too many",
        "pingpong.py",
        "facts.cycles >= limits.verify_cycles",
        "facts.cycles > limits.verify_cycles",
        "f",
        "verify and post-merge",
        "verify_cycles",
    ),
    Mutant(
        "a third answer in a thread",
        "threads.py",
        "facts.our_replies >= limits.thread_replies",
        "facts.our_replies > limits.thread_replies",
        "e",
        "one pull request",
        "one_action_per_thread",
    ),
)
"""The rules that halt the loop and lose nothing, one by one."""


def caught_by(mutant: Mutant, folder: Path, *, most: int = 400_000) -> str:
    """The invariant that the explorer finds broken with this mutant in place, "" if none is.

    Raises ValueError if the guards no longer contain what the mutant changes.
    """
    package = folder / "loop_guards"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / mutant.file
    text = file.read_text("utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {mutant.file} does not hold its line exactly once")
    file.write_text(text.replace(mutant.old, mutant.new), "utf-8")
    command = [sys.executable, "-P", "-m", "tests.loop_guards.model.explore", mutant.world]
    command += ["--only", mutant.only, "--most", str(most)]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(PACKAGE.parent)))},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"^violated: (\w+)", done.stdout, re.MULTILINE)
    if found is None and done.returncode:
        raise RuntimeError(done.stderr)
    return found[1] if found else ""


def main() -> int:
    """Exit code 1 if a mutant is not caught by its invariant."""
    missed = 0
    for mutant in MUTANTS:
        with tempfile.TemporaryDirectory() as folder:
            name = caught_by(mutant, Path(folder))
        missed += name != mutant.invariant
        print(f"{mutant.name:<52}{name or 'not caught'}", flush=True)
    print(f"\n{len(MUTANTS) - missed} of {len(MUTANTS)} caught by the invariant named for them")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
