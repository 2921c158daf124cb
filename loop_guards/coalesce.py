"""Which findings become one task. DESIGN §3.2: one automated fix pull request per file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loop_guards.decisions import Decision
from loop_guards.facts import HandoffFinding, MergeFacts
from loop_guards.handoff import HandoffDecision, HandoffReason
from loop_guards.limits import Limits

BATCH_MERGE = "merge"
"""The batch of the automatic plan; a later order's batch is its own id."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """One fix task to be created. `waiting`: a path of it is leased to another task.

    `decisions` are the yes-decisions of its findings; without one there is no plan (TypeError).
    """

    key: str
    target: str
    paths: tuple[str, ...]
    finding_ids: tuple[int, ...]
    ordered_ids: frozenset[int]
    batch: str
    waiting: bool
    decisions: tuple[HandoffDecision, ...]

    def __post_init__(self) -> None:
        allowed = {item.finding_id for item in self.decisions if item.yes}
        sealed_all = all(isinstance(item, Decision) for item in self.decisions)
        if not (sealed_all and self.finding_ids and set(self.finding_ids) == allowed):
            raise TypeError("a task plan needs a yes-decision of loop_guards for each finding")


@dataclass(frozen=True, slots=True)
class Handed:
    """A finding with its yes-decision."""

    finding: HandoffFinding
    decision: HandoffDecision


def coalesce(
    handed: Iterable[Handed], facts: MergeFacts, limits: Limits, *, batch: str = BATCH_MERGE
) -> tuple[TaskPlan, ...]:
    """Group findings into tasks: connected by shared files, at most `max_task_files` files each.

    The order of the input does not matter. Findings without a path are one task of their own path
    "" each target can see (a human ordered them).
    """
    items = sorted(handed, key=lambda item: item.finding.id)
    tasks: list[TaskPlan] = []
    busy = set(facts.leased_paths)
    for component in _components(items):
        for part in _split(component, limits.max_task_files):
            plan = _plan(part, facts, batch, busy)
            busy.update(plan.paths)
            tasks.append(plan)
    return tuple(sorted(tasks, key=lambda plan: plan.key))


def _files(finding: HandoffFinding) -> tuple[str, ...]:
    return tuple(dict.fromkeys((finding.path or "", *finding.also[:5])))


def _components(items: list[Handed]) -> list[list[Handed]]:
    """Findings that share a file, directly or through others (union-find over paths)."""
    parent: dict[str, str] = {}

    def root(path: str) -> str:
        parent.setdefault(path, path)
        while parent[path] != path:
            parent[path] = parent[parent[path]]
            path = parent[path]
        return path

    for item in items:
        first, *rest = _files(item.finding)
        for other in rest:
            low, high = sorted((root(first), root(other)))
            parent[high] = low
    groups: dict[str, list[Handed]] = {}
    for item in items:
        groups.setdefault(root(_files(item.finding)[0]), []).append(item)
    return [groups[key] for key in sorted(groups)]


def _split(component: list[Handed], size: int) -> list[list[Handed]]:
    """A component of too many files is split by path; each finding follows its first path."""
    paths = {path for item in component for path in _files(item.finding)}
    if len(paths) <= size:
        return [component]
    by_path: dict[str, list[Handed]] = {}
    for item in component:
        by_path.setdefault(item.finding.path or "", []).append(item)
    return [by_path[path] for path in sorted(by_path)]


def _plan(part: list[Handed], facts: MergeFacts, batch: str, busy: set[str]) -> TaskPlan:
    own = sorted({item.finding.path or "" for item in part})
    paths = sorted({path for item in part for path in _files(item.finding)})
    if busy.intersection(paths) - facts.leased_paths:
        paths = own
    return TaskPlan(
        key=f"{facts.repository}:{facts.merge_commit}:{own[0]}:{batch}",
        target=_target(part, facts),
        paths=tuple(paths),
        finding_ids=tuple(item.finding.id for item in part),
        ordered_ids=frozenset(
            item.finding.id for item in part if item.decision.reason == HandoffReason.HUMAN_QUEUE
        ),
        batch=batch,
        waiting=bool(busy.intersection(paths)),
        decisions=tuple(item.decision for item in part),
    )


def _target(part: list[Handed], facts: MergeFacts) -> str:
    """A human's choice, of the worst finding, in policy order, of the smallest id."""
    known = facts.targets or ("builtin",)

    def rank(item: Handed) -> tuple[int, int, int]:
        chosen = item.finding.order.target if item.finding.order else None
        place = known.index(chosen) if chosen in known else len(known)
        return item.finding.severity.rank, place, item.finding.id

    for item in sorted(part, key=rank):
        chosen = item.finding.order.target if item.finding.order else None
        if chosen in known:
            return chosen
    return known[0]
