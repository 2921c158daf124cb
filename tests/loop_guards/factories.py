"""Facts that are valid by default, so that a test states only its difference; and any facts at all.

The default finding is an open warning of a person's merged pull request: it is handed off.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from loop_guards import (
    Acts,
    AfterRoundFacts,
    DismissalFacts,
    FindingStatus,
    FixFinding,
    Handed,
    HandoffFinding,
    HandoffMode,
    HumanOrder,
    Limits,
    MergeFacts,
    OrderFacts,
    Origin,
    PullState,
    ResumeFacts,
    ReviewStart,
    RoundFacts,
    RoundRecord,
    RubricFinding,
    Severity,
    StopFacts,
    TaskFacts,
    TaskState,
    UnqueueFacts,
    decide_handoff,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LIMITS = Limits()
PATIENT = settings(deadline=None, max_examples=min(60, settings().max_examples))
"""For properties: a busy machine is no failure, and the explorer is where breadth belongs."""


def at(minutes: int) -> datetime:
    """A moment relative to NOW."""
    return NOW + timedelta(minutes=minutes)


def order(number: int = 7, *, minutes: int = 0, target: str | None = None) -> HumanOrder:
    return HumanOrder(id=number, at=at(minutes), target=target)


def finding(number: int = 1, path: str | None = "a.py", **different: Any) -> HandoffFinding:
    facts: dict[str, Any] = {
        "severity": Severity.WARNING,
        "origin": Origin.ORIGINAL,
        "status": FindingStatus.OPEN,
    }
    return HandoffFinding(id=number, path=path, **(facts | different))


def merge(**different: Any) -> MergeFacts:
    facts: dict[str, Any] = {
        "now": NOW,
        "repository": 3,
        "merge_commit": "c0ffee",
        "base": "main",
        "default_branch": "main",
        "mode": HandoffMode.AUTO,
        "author_is_bot": False,
        "is_fix_pr": False,
        "merged": True,
        "targets": ("red", "purple"),
    }
    return MergeFacts(**(facts | different))


def of_task(number: int = 1, **different: Any) -> FixFinding:
    """A warning of the task, still open: it blocks."""
    facts: dict[str, Any] = {
        "status": FindingStatus.OPEN,
        "origin": Origin.ORIGINAL,
        "of_task": True,
        "severity_at_handoff": Severity.WARNING,
    }
    return FixFinding(id=number, **(facts | different))


def introduced(number: int = 2, **different: Any) -> FixFinding:
    """A critical that the fix brought in: it blocks."""
    facts: dict[str, Any] = {
        "status": FindingStatus.OPEN,
        "origin": Origin.INTRODUCED,
        "of_task": False,
        "severity_when_raised": Severity.CRITICAL,
        "in_own_diff": True,
    }
    return FixFinding(id=number, **(facts | different))


def remark(severity: Severity, **different: Any) -> RubricFinding:
    facts: dict[str, Any] = {"category": "security", "path": "a.py"}
    return RubricFinding(severity=severity, **(facts | different))


def before_round(**different: Any) -> RoundFacts:
    facts: dict[str, Any] = {"rounds_started": 1, "allowance": 5}
    return RoundFacts(**(facts | different))


def after(*history: set[int], **different: Any) -> AfterRoundFacts:
    """After a round of a task with rounds left; `history` are the blocking sets, oldest first."""
    facts: dict[str, Any] = {
        "rounds_started": len(history),
        "allowance": 5,
        "blocking_history": tuple(frozenset(blocking) for blocking in history),
        "coverage_full": True,
    }
    return AfterRoundFacts(**(facts | different))


def start(**different: Any) -> ReviewStart:
    """A person's push to an open pull request."""
    facts: dict[str, Any] = {
        "is_open": True,
        "is_newest_head": True,
        "draft": False,
        "by_human": True,
        "commanded": False,
        "machine_rounds": 0,
        "already_reviewed": False,
    }
    return ReviewStart(**(facts | different))


def ordering(**different: Any) -> OrderFacts:
    """A person with write access orders an open finding of a merged pull request."""
    facts: dict[str, Any] = {
        "by_human": True,
        "can_write": True,
        "pull_request": PullState.MERGED,
        "status": FindingStatus.OPEN,
    }
    return OrderFacts(**(facts | different))


def unqueuing(**different: Any) -> UnqueueFacts:
    """A person with write access takes out a finding whose order waits."""
    facts: dict[str, Any] = {"by_human": True, "can_write": True, "order_pending": True}
    return UnqueueFacts(**(facts | different))


def dismissing(**different: Any) -> DismissalFacts:
    """A person with write access dismisses an open warning."""
    facts: dict[str, Any] = {
        "by_human": True,
        "can_write": True,
        "status": FindingStatus.OPEN,
        "severity": Severity.WARNING,
    }
    return DismissalFacts(**(facts | different))


def stopping(**different: Any) -> StopFacts:
    """A person with write access stops a lineage that runs."""
    facts: dict[str, Any] = {"by_human": True, "can_write": True, "stopped": False}
    return StopFacts(**(facts | different))


def resuming(**different: Any) -> ResumeFacts:
    """A person with write access resumes an escalated task."""
    facts: dict[str, Any] = {
        "by_human": True,
        "can_write": True,
        "stopped": False,
        "task": TaskState.ESCALATED,
    }
    return ResumeFacts(**(facts | different))


def task(state: TaskState, **different: Any) -> TaskFacts:
    """A task that proposed nothing yet, whose paths nobody else holds."""
    return TaskFacts(state=state, **different)


def record(*blocking: int, **different: Any) -> RoundRecord:
    """A published round that looked at everything; `blocking` is what blocked after it."""
    facts: dict[str, Any] = {
        "head": "c0ffee",
        "called": True,
        "published": True,
        "blocking": frozenset(blocking),
    }
    return RoundRecord(**(facts | different))


PATHS = st.sampled_from(["", "a.py", "b.py", "c.py", "d.py", "e.py", "f.py", "g:h.py", "ü.py"])
_MOMENTS = st.datetimes(timezones=st.sampled_from([None, UTC]))
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: PATHS,
    int: st.integers(-3, 40),
    bool: st.booleans(),
    type(None): st.none(),
    datetime: _MOMENTS,
}


def anything(hint: Any) -> st.SearchStrategy[Any]:
    """Every value of a type, fields with defaults included; also impossible combinations."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint in _CHECKED:
        return _CHECKED[hint]()
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return st.builds(hint, **{item.name: anything(hints[item.name]) for item in _fields(hint)})
    return _generic(typing.get_origin(hint), typing.get_args(hint))


def _generic(origin: Any, arguments: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if origin in (types.UnionType, typing.Union):
        return st.one_of([anything(each) for each in arguments])
    if origin in (tuple, Iterable):
        return st.lists(anything(arguments[0]), max_size=4).map(tuple)
    assert origin is frozenset
    return st.frozensets(anything(arguments[0]), max_size=4)


def _fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(kind)


ANY_LIMITS = st.builds(
    Limits,
    max_review_iterations=st.integers(1, 6),
    max_fix_tasks=st.integers(0, 4),
    max_task_files=st.integers(1, 5),
    max_also_files=st.integers(0, 5),
    path_tasks=st.integers(1, 4),
    pingpong_cap=st.integers(1, 10),
    stall_turns=st.integers(1, 3),
    coverage_attempts=st.integers(1, 3),
    max_flips=st.integers(1, 3),
    verify_cycles=st.integers(0, 3),
    thread_replies=st.integers(0, 3),
    budget_input_tokens=st.integers(1, 60),
    max_model_runs=st.integers(0, 60),
)


def _handed() -> st.SearchStrategy[Handed]:
    """A finding with an answer about it, or about another: only the guards make answers."""
    answers = st.builds(decide_handoff, anything(HandoffFinding), anything(MergeFacts), ANY_LIMITS)
    return st.builds(Handed, anything(HandoffFinding), answers)


def _acts() -> st.SearchStrategy[Acts]:
    counts = {item.name: st.integers(0, 40) for item in _fields(Acts)}
    return st.builds(Acts, **counts)


_CHECKED: dict[Any, Callable[[], st.SearchStrategy[Any]]] = {
    Limits: lambda: ANY_LIMITS,
    Handed: _handed,
    Acts: _acts,
}
"""Types that refuse some values when they are made, each with what it accepts."""
