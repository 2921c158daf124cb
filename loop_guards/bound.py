"""The bound: how much machines can do at most before a human must act again. DESIGN §3.8."""

from __future__ import annotations

from dataclasses import dataclass, fields

from loop_guards.limits import Limits


@dataclass(frozen=True, slots=True)
class Acts:
    """What people did, and what else the bound is counted from; none may be negative.

    `source_acts` (H): humans' opens, pushes, commands and other acts that start a review, on pull
    requests that are no fixes. `bot_prs` (B): pull requests of outside bots that were admitted.
    `merges` (G): merged pull requests. `orders` (Q): humans' orders to fix a finding. `resumes`
    (Z): humans' resumes, of a task or of a stopped lineage, and reopened fix pull requests.
    """

    source_acts: int = 0
    bot_prs: int = 0
    merges: int = 0
    orders: int = 0
    resumes: int = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            if getattr(self, item.name) < 0:
                raise ValueError(f"{item.name} must not be negative: acts are counted")


ONE_MERGE = Acts(merges=1)
"""What one merged pull request can cause by itself."""


@dataclass(frozen=True, slots=True)
class Bound:
    """At most this many, whatever models say and however events arrive."""

    fix_tasks: int
    source_rounds: int
    fix_rounds: int
    turns: int
    verify_runs: int
    model_runs: int


def bound(limits: Limits, acts: Acts) -> Bound:
    """The most that machines can do after these acts.

    Derivation, with N `max_review_iterations`, M `resume_rounds`, P `pingpong_cap`,
    T `max_fix_tasks`, V `verify_cycles`, R `max_reviewers`, A `sessions_per_agent`:

    - *Fix tasks* = fix pull requests ≤ G·T + Q. An automatic plan is made once per merge and keeps
      at most T tasks without an order; every other task holds an order, which ends with it.
    - *Source rounds* ≤ H·(1+P) + B·P. A human's act starts one round and sets the count of
      machine-caused rounds to zero; at P of them reviews pause. A pull request that a bot opened
      starts with the count at zero and without the human's round.
    - *Fix rounds* ≤ N·(G·T + Q) + M·Z, *turns* the same. A round is charged at its first model
      call and never given back, a turn when it begins; each is refused at the task's allowance,
      which is N and grows by M per resume. An order for a finding of an escalated task is a resume
      of it and makes no task, and M ≤ N. Turns and rounds are counted by the task: no push, no head
      and no new pull request resets them.
    - *Verify runs* ≤ V·(tasks): refused after V of a task.
    - *Model runs* (agent sessions) ≤ W·(source rounds + fix rounds) + A·(turns + V·tasks) +
      V·W·tasks, with W = (R+1)·A: in a round the coordinator and R reviewers need at most A
      sessions each; a turn is one agent, as is its work after a verify run; a verify run is a
      review. `max_model_runs` cuts this, per lineage: a human's merge starts one lineage, and the
      purse of a lineage grows with its resumes.

    Every term is needed: tests/loop_guards/model reaches each on some schedule.
    """
    n, m = limits.max_review_iterations, limits.resume_rounds
    tasks = acts.merges * limits.max_fix_tasks + acts.orders
    source_rounds = (
        acts.source_acts * (1 + limits.pingpong_cap) + acts.bot_prs * limits.pingpong_cap
    )
    fix_rounds = n * tasks + m * acts.resumes
    verify_runs = limits.verify_cycles * tasks
    agent = limits.sessions_per_agent
    review = (limits.max_reviewers + 1) * agent
    model_runs = (
        review * (source_rounds + fix_rounds)
        + agent * (fix_rounds + verify_runs)
        + review * verify_runs
    )
    return Bound(
        fix_tasks=tasks,
        source_rounds=source_rounds,
        fix_rounds=fix_rounds,
        turns=fix_rounds,
        verify_runs=verify_runs,
        model_runs=model_runs,
    )
