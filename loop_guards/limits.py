"""Every constant of the rules, in one validated value. Sources: DESIGN §3 unless said otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the loop. Construction raises ValueError naming the field that makes no sense.

    `budget_*` are per lineage: uncached input tokens, US dollars in millionths, seconds of model
    time. `path_tasks` counts automatic tasks per repository, base and path within `path_window`.
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

    def __post_init__(self) -> None:
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if not 1 <= self.pingpong_cap <= 10:
            raise ValueError("pingpong_cap must be between 1 and 10")
        if self.max_fix_tasks < 0:
            raise ValueError("max_fix_tasks must not be negative")
        if self.path_window <= timedelta(0):
            raise ValueError("path_window must be positive")

    @property
    def resume_rounds(self) -> int:
        """Rounds that one resume adds: half a first allowance, at least one."""
        return max(1, self.max_review_iterations // 2)


_AT_LEAST_ONE = (
    "max_review_iterations",
    "max_task_files",
    "path_tasks",
    "max_bot_prs_per_day",
    "verify_cycles",
    "model_calls_per_session",
    "risk_pattern_warnings",
    "risk_pattern_same_place",
    "stall_turns",
    "budget_input_tokens",
    "budget_micro_dollars",
    "budget_model_seconds",
)
