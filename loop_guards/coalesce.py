"""Which findings become one task. DESIGN §3.2: one automated fix pull request per file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loop_guards.decisions import Sealed, sealed
from loop_guards.facts import HandoffFinding, MergeFacts
from loop_guards.handoff import HandoffDecision, HandoffReason
from loop_guards.limits import Limits

BATCH_MERGE = "merge"
"""The batch of the automatic plan; a later order's batch is its own id."""

FALLBACK_TARGET = "builtin"
"""The target when the policy names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan(Sealed):
    """One fix task to be created: `paths` may be changed, `finding_ids` are to be fixed.

    `waiting`: a path of it is leased, or claimed by an earlier task of the same plan. `joins`: no
    new task, the findings go to this waiting one. `paths` is empty if no finding names a file.
    `decisions` are the yes-decisions of its findings; without one for each there is no plan.
    """

    key: str
    target: str
    paths: tuple[str, ...]
    finding_ids: tuple[int, ...]
    ordered_ids: frozenset[int]
    batch: str
    waiting: bool
    decisions: tuple[HandoffDecision, ...]
    joins: int | None = None


@dataclass(frozen=True, slots=True)
class Handed:
    """A finding with its yes-decision."""

    finding: HandoffFinding
    decision: HandoffDecision


@dataclass(frozen=True, slots=True)
class _Part:
    """Findings that become one task; `own` are the files they lie in, `paths` all they may need."""

    items: tuple[Handed, ...]
    own: tuple[str, ...]
    paths: tuple[str, ...]


def coalesce(
    handed: Iterable[Handed], facts: MergeFacts, limits: Limits, *, batch: str = BATCH_MERGE
) -> tuple[TaskPlan, ...]:
    """Group findings into tasks: connected by shared files, at most `max_task_files` files each.

    Each finding is in exactly one task, each file that a finding lies in belongs to exactly one,
    and tasks that do not wait share no file at all. The order of the input does not matter.
    Findings whose decision is not yes are left out. Findings without a file form one task.
    """
    unique = {item.finding.id: item for item in sorted(handed, key=_order) if _is_handed(item)}
    busy = set(facts.leased_paths)
    tasks: list[TaskPlan] = []
    for component in _components(list(unique.values()), limits):
        for part in _split(component, limits):
            plan = _plan(part, facts, limits, batch, busy)
            busy.update(plan.paths)
            tasks.append(plan)
    return tuple(sorted(tasks, key=lambda plan: plan.key))


def _order(item: Handed) -> tuple[int, str, tuple[str, ...], int]:
    finding = item.finding
    return finding.id, finding.path or "", finding.also, finding.severity.rank


def _is_handed(item: Handed) -> bool:
    return item.decision.yes and item.decision.finding_id == item.finding.id


def _files(finding: HandoffFinding, limits: Limits) -> tuple[str, ...]:
    """Its own file first ("" for none), then those its fix needs besides."""
    others = finding.also[: limits.max_also_files]
    return tuple(dict.fromkeys((finding.path or "", *(path for path in others if path))))


def _components(items: list[Handed], limits: Limits) -> list[list[Handed]]:
    """Findings that share a file, directly or through others (union-find over paths)."""
    parent: dict[str, str] = {}

    def root(path: str) -> str:
        parent.setdefault(path, path)
        while parent[path] != path:
            parent[path] = parent[parent[path]]
            path = parent[path]
        return path

    for item in items:
        first, *rest = _files(item.finding, limits)
        for other in rest:
            parent[root(other)] = root(first)
    groups: dict[str, list[Handed]] = {}
    for item in items:
        groups.setdefault(root(item.finding.path or ""), []).append(item)
    return list(groups.values())


def _split(component: list[Handed], limits: Limits) -> list[_Part]:
    """One part if its files fit in a task, else as few as first-come packing by path gives.

    All findings of one file stay together, so a file has one task; where those alone need too many
    files, the last of the other files are left out.
    """
    whole = _part(component, limits)
    if len(whole.paths) <= limits.max_task_files:
        return [whole]
    by_path: dict[str, list[Handed]] = {}
    for item in component:
        by_path.setdefault(item.finding.path or "", []).append(item)
    parts: list[_Part] = []
    for path in sorted(by_path):
        alone = _part(by_path[path], limits)
        joined = _part([*parts[-1].items, *by_path[path]], limits) if parts else alone
        if parts and len(joined.paths) <= limits.max_task_files:
            parts[-1] = joined
        else:
            parts.append(alone)
    return [_trimmed(part, limits) for part in parts]


def _part(items: list[Handed], limits: Limits) -> _Part:
    files = [_files(item.finding, limits) for item in items]
    return _Part(
        items=tuple(items),
        own=tuple(sorted({item.finding.path or "" for item in items})),
        paths=tuple(sorted({path for each in files for path in each if path})),
    )


def _trimmed(part: _Part, limits: Limits) -> _Part:
    own = [path for path in part.own if path]
    others = [path for path in part.paths if path not in own]
    kept = sorted([*own, *others[: limits.max_task_files - len(own)]])
    return _Part(items=part.items, own=part.own, paths=tuple(kept))


def _plan(part: _Part, facts: MergeFacts, limits: Limits, batch: str, busy: set[str]) -> TaskPlan:
    items = sorted(part.items, key=lambda item: item.finding.id)
    joins = _waiting_task(part, facts, limits)
    return TaskPlan(
        key=f"{facts.repository}:{facts.merge_commit}:{part.own[0]}:{batch}",
        target=_target(items, facts),
        paths=part.paths,
        finding_ids=tuple(item.finding.id for item in items),
        ordered_ids=frozenset(
            item.finding.id for item in items if item.decision.reason == HandoffReason.HUMAN_QUEUE
        ),
        batch=batch,
        waiting=joins is not None or not busy.isdisjoint(part.paths),
        decisions=tuple(item.decision for item in items),
        joins=joins,
        seal=sealed(),
    )


def _waiting_task(part: _Part, facts: MergeFacts, limits: Limits) -> int | None:
    """The oldest waiting task on one of these files that has room for all of them."""
    fitting = (
        task.id
        for task in facts.waiting_tasks
        if not set(task.paths).isdisjoint(part.paths)
        and len({*task.paths, *part.paths}) <= limits.max_task_files
    )
    return min(fitting, default=None)


def _target(items: list[Handed], facts: MergeFacts) -> str:
    """A human's choice, of the worst finding, in policy order: then only one is left."""
    known = facts.targets or (FALLBACK_TARGET,)
    places = {name: place for place, name in reversed(list(enumerate(known)))}
    chosen = [
        (item.finding.severity.rank, places[order.target])
        for item in items
        if (order := item.finding.pending) is not None and order.target in places
    ]
    assigned = [
        (item.finding.severity.rank, places.get(item.finding.target or "", 0)) for item in items
    ]
    return known[min(chosen or assigned)[1]]
