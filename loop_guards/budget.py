"""What a lineage may spend. DESIGN §3.4: the worst case of a run must fit before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from loop_guards.limits import Limits


@dataclass(frozen=True, slots=True)
class Spent:
    """An amount of the three budgets, in the units of `Limits.budget_*`."""

    input_tokens: int = 0
    micro_dollars: int = 0
    model_seconds: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.input_tokens + other.input_tokens,
            self.micro_dollars + other.micro_dollars,
            self.model_seconds + other.model_seconds,
        )

    def exceeds(self, limits: Limits, resumes: int = 0) -> bool:
        """Whether any of the three budgets is used up."""
        return self._any_over(purse(limits, resumes), least=0)

    def overdraws(self, limits: Limits, resumes: int = 0) -> bool:
        """Whether any of the three is more than the budget holds."""
        return self._any_over(purse(limits, resumes), least=1)

    def _any_over(self, budget: Spent, *, least: int) -> bool:
        return (
            self.input_tokens - budget.input_tokens >= least
            or self.micro_dollars - budget.micro_dollars >= least
            or self.model_seconds - budget.model_seconds >= least
        )


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
    )
