"""Pure rules that make the fix loop halt. Facts in, decisions out; nothing else.

Standard library only: no I/O, no clock, no logging, and nothing of `app`. Every decision carries
its reason code, the values it compared and the trace of all guards that were asked; those that
allow an effect can be made nowhere else.
"""

from __future__ import annotations

from loop_guards.budget import NOTHING_SPENT, Spent, purse
from loop_guards.closing import ClosePlan, plan_merged, plan_unmerged
from loop_guards.coalesce import BATCH_MERGE, Handed, TaskPlan, coalesce
from loop_guards.convergence import (
    ConvergenceReason,
    FixFinding,
    blocks,
    decide_fix_verdict,
)
from loop_guards.decisions import Asked, Decision
from loop_guards.evidence import (
    FixedDecision,
    FixedFacts,
    FixedOutcome,
    FixedReason,
    ReturnDecision,
    ReturnFacts,
    ReturnOutcome,
    ReturnReason,
    judge_fixed,
    judge_return,
)
from loop_guards.facts import (
    HandoffFinding,
    HandoffMode,
    HumanOrder,
    MergeFacts,
    TaskState,
    WaitingTask,
)
from loop_guards.findings import FindingStatus, Origin, Severity, Verdict
from loop_guards.handoff import (
    HandoffDecision,
    HandoffOutcome,
    HandoffReason,
    decide_handoff,
)
from loop_guards.limits import Limits
from loop_guards.orders import (
    OrderDecision,
    OrderFacts,
    OrderOutcome,
    OrderReason,
    PullState,
    answer_order,
)
from loop_guards.pingpong import (
    VerifyDecision,
    VerifyFacts,
    VerifyOutcome,
    VerifyReason,
    may_verify,
)
from loop_guards.progress import (
    AfterRoundFacts,
    NextDecision,
    NextOutcome,
    NextReason,
    RoundFacts,
    StartDecision,
    StartOutcome,
    StartReason,
    after_round,
    allowance,
    may_start_round,
)
from loop_guards.reviewing import (
    ReviewDecision,
    ReviewOutcome,
    ReviewReason,
    ReviewStart,
    may_review,
)
from loop_guards.rubric import RubricFinding, RubricReason, VerdictDecision, decide_rubric
from loop_guards.threads import (
    ThreadAction,
    ThreadDecision,
    ThreadFacts,
    ThreadReason,
    decide_thread,
)

__all__ = [
    "BATCH_MERGE",
    "NOTHING_SPENT",
    "AfterRoundFacts",
    "Asked",
    "ClosePlan",
    "ConvergenceReason",
    "Decision",
    "FindingStatus",
    "FixFinding",
    "FixedDecision",
    "FixedFacts",
    "FixedOutcome",
    "FixedReason",
    "Handed",
    "HandoffDecision",
    "HandoffFinding",
    "HandoffMode",
    "HandoffOutcome",
    "HandoffReason",
    "HumanOrder",
    "Limits",
    "MergeFacts",
    "NextDecision",
    "NextOutcome",
    "NextReason",
    "OrderDecision",
    "OrderFacts",
    "OrderOutcome",
    "OrderReason",
    "Origin",
    "PullState",
    "ReturnDecision",
    "ReturnFacts",
    "ReturnOutcome",
    "ReturnReason",
    "ReviewDecision",
    "ReviewOutcome",
    "ReviewReason",
    "ReviewStart",
    "RoundFacts",
    "RubricFinding",
    "RubricReason",
    "Severity",
    "Spent",
    "StartDecision",
    "StartOutcome",
    "StartReason",
    "TaskPlan",
    "TaskState",
    "ThreadAction",
    "ThreadDecision",
    "ThreadFacts",
    "ThreadReason",
    "Verdict",
    "VerdictDecision",
    "VerifyDecision",
    "VerifyFacts",
    "VerifyOutcome",
    "VerifyReason",
    "WaitingTask",
    "after_round",
    "allowance",
    "answer_order",
    "blocks",
    "coalesce",
    "decide_fix_verdict",
    "decide_handoff",
    "decide_rubric",
    "decide_thread",
    "judge_fixed",
    "judge_return",
    "may_review",
    "may_start_round",
    "may_verify",
    "plan_merged",
    "plan_unmerged",
    "purse",
]
