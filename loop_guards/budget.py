"""What a lineage may spend. DESIGN §3.4: the worst case of a run must fit before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from loop_guards.limits import Limits


@dataclass(frozen=True, slots=True)
class Spent:
    """An amount of the four budgets, in the units of `Limits.budget_*` and `max_model_runs`."""

    input_tokens: int = 0
    micro_dollars: int = 0
    model_seconds: int = 0
    model_runs: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.input_tokens + other.input_tokens,
            self.micro_dollars + other.micro_dollars,
            self.model_seconds + other.model_seconds,
            self.model_runs + other.model_runs,
        )

    def exceeds(self, limits: Limits, resumes: int = 0) -> bool:
        """Whether any of the four budgets is used up."""
        return self._any_over(limits, resumes, least=0)

    def overdraws(self, limits: Limits, resumes: int = 0) -> bool:
        """Whether any of the four is more than the budget holds."""
        return self._any_over(limits, resumes, least=1)

    def _any_over(self, limits: Limits, resumes: int, *, least: int) -> bool:
        budget = purse(limits, resumes)
        return (
            self.input_tokens - budget.input_tokens >= least
            or self.micro_dollars - budget.micro_dollars >= least
            or self.model_seconds - budget.model_seconds >= least
            # Without a cut the bound of DESIGN §3.8 is what limits model runs.
            or (limits.max_model_runs > 0 and self.model_runs - budget.model_runs >= least)
        )


UNITS = ("input_tokens", "micro_dollars", "model_seconds", "model_runs")
"""The names of the four budgets."""

NOTHING_SPENT = Spent()


def purse(limits: Limits, resumes: int = 0) -> Spent:
    """The budget of a lineage: the first one, and a share for each resume of one of its tasks.

    A resume's share is to the budget what its rounds are to the first allowance, rounded down.
    """
    parts = limits.max_review_iterations + max(0, resumes) * limits.resume_rounds
    first = limits.max_review_iterations
    return Spent(
        limits.budget_input_tokens * parts // first,
        limits.budget_micro_dollars * parts // first,
        limits.budget_model_seconds * parts // first,
        limits.max_model_runs * parts // first,
    )
