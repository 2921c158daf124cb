"""Every constant of the rules, in one validated value. Sources: DESIGN §3 unless said otherwise."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the loop. Construction raises ValueError naming the field that makes no sense.

    `budget_*` are per lineage: uncached input tokens, US dollars in millionths, seconds of model
    time. `path_tasks` counts automatic tasks per repository, base and path within `path_window`.
    `max_also_files` is what one finding may name besides its own file. `coverage_attempts` are
    rounds in a row below full coverage before a human is asked; `max_flips` is the flip of one
    finding that does it. `bot_prs_per_window` and `bot_pr_window` are per repository.
    `max_reviewers` is the largest tier's (DESIGN §4), `sessions_per_agent` what one agent may need
    for one answer: the first, and at most two more after an answer that was cut off or can't be
    read. `max_model_runs` cuts a lineage's agent sessions below the bound; 0 cuts nothing.
    """

    max_review_iterations: int = 5
    max_fix_tasks: int = 10
    max_task_files: int = 5
    path_tasks: int = 3
    path_window: timedelta = timedelta(days=7)
    pingpong_cap: int = 3
    max_bot_prs_per_day: int = 20
    verify_cycles: int = 2
    model_calls_per_session: int = 40
    risk_pattern_warnings: int = 3
    risk_pattern_same_place: int = 2
    stall_turns: int = 2
    budget_input_tokens: int = 2_000_000
    budget_micro_dollars: int = 10_000_000
    budget_model_seconds: int = 3_600
    max_also_files: int = 5
    coverage_attempts: int = 2
    max_flips: int = 2
    bot_prs_per_window: int = 10
    bot_pr_window: timedelta = timedelta(minutes=20)
    thread_replies: int = 2
    max_reviewers: int = 7
    sessions_per_agent: int = 3
    max_model_runs: int = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            _check(item.name, getattr(self, item.name))
        if self.pingpong_cap > _MAX_PINGPONG_CAP:
            raise ValueError(f"pingpong_cap must be between 1 and {_MAX_PINGPONG_CAP}")

    @property
    def resume_rounds(self) -> int:
        """Rounds that one resume adds: half a first allowance, at least one."""
        return max(1, self.max_review_iterations // 2)


_MAX_PINGPONG_CAP = 10
_MAY_BE_ZERO = frozenset(
    {"max_fix_tasks", "max_also_files", "thread_replies", "verify_cycles", "max_model_runs"}
)
"""Zero switches these off; zero of any other would let nothing run or everything stop at once."""


def _check(name: str, value: object) -> None:
    if isinstance(value, timedelta):
        if value <= timedelta(0):
            raise ValueError(f"{name} must be a positive length of time")
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number, not {value!r}")  # noqa: TRY004 - one promise
    least = 0 if name in _MAY_BE_ZERO else 1
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
