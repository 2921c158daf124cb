"""The state of a modelled world: what the ledger and the forge remember, and nothing more.

Everything is a tuple of small numbers, so a state is its own dictionary key. Findings, pull
requests and paths are named by their place; sets of them are bit masks. What a rule never asks
about is not kept: the less a state remembers, the more interleavings meet in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from loop_guards import FindingStatus, HandoffMode, Limits, Origin, Severity, TaskState

OPEN, CLOSED, MERGED = range(3)
"""The forge's states of a pull request."""

NO_ORDER, PENDING, ENDED = range(3)
"""The latest order of a finding."""

NO_PULL, PULL_OPEN, PULL_CLOSED = range(3)
"""The fix pull request of a task."""


class Pull(NamedTuple):
    """A source pull request. `planned`: its automatic plan is stored. `stale`: a worker has read
    that it is closed and has not stored that yet. `autos` counts its automatic tasks."""

    status: int = OPEN
    planned: bool = False
    stale: bool = False
    stopped: bool = False
    autos: int = 0
    resumes: int = 0


class Finding(NamedTuple):
    """A finding of a source pull request.

    `order` is the state of its latest order, `newer`: it was given after a worker read "closed".
    `covered` is how the latest task that covered it ended ("": never covered, or covered by a task
    that lives). `orders`, `autos` and `tasks` count what happened to it. `deferred`: the last
    answer to "hand it off?" was "ask again".
    """

    status: FindingStatus = FindingStatus.OPEN
    order: int = NO_ORDER
    newer: bool = False
    covered: str = ""
    orders: int = 0
    autos: int = 0
    tasks: int = 0
    deferred: bool = False


class Round(NamedTuple):
    """One run of a task. `blocking` is a mask, -1 when it said nothing."""

    head: int
    published: bool
    resumes: int
    blocking: int
    full: bool


class Introduced(NamedTuple):
    """A finding first raised on the fix pull request."""

    severity: Severity
    fixed: bool = False


class Task(NamedTuple):
    """A fix task that lives, or one that a reopened fix pull request can bring back.

    `findings` are those still of it, `ordered` those of them that a human ordered, `fixed` those
    marked as fixed on its pull request. Findings first raised there have the bits after the
    world's. `changed`: paths changed since the last look, `proposed`: ever; `idle`: the last turn
    was empty. `broken`: fixed findings whose anchor a bot touched since. `flips`: findings that
    flipped once. `known`: the last push was judged before. `upgraded`: suggestions that were raised
    to warnings at a changed anchor. `running`: a round of it made its first model call and has not
    ended. `reserved` is set aside for its run.
    """

    pull: int
    state: TaskState
    findings: int
    ordered: int
    paths: int
    has_pull: int = NO_PULL
    rounds: tuple[Round, ...] = ()
    resumes: int = 0
    turns: int = 0
    head: int = 0
    fixed: int = 0
    introduced: tuple[Introduced, ...] = ()
    changed: int = 0
    proposed: int = 0
    idle: bool = False
    broken: int = 0
    flips: int = 0
    known: bool = False
    upgraded: int = 0
    running: bool = False
    verified: int = 0
    reserved: int = 0


class State(NamedTuple):
    """A whole world. `left` are the acts that the world still allows of each limited kind.

    `path_tasks` counts recent automatic tasks by path; `keys` are the keys of all tasks ever made.
    `spent` is what the lineage used (worlds with a budget have one lineage).
    """

    pulls: tuple[Pull, ...]
    findings: tuple[Finding, ...]
    tasks: tuple[Task, ...] = ()
    left: tuple[int, ...] = ()
    path_tasks: tuple[int, ...] = ()
    keys: frozenset[str] = frozenset()
    kill_switch: bool = False
    spent: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """What never changes about a finding."""

    pull: int
    path: int | None
    severity: Severity = Severity.WARNING
    origin: Origin = Origin.ORIGINAL
    also: int = 0
    acknowledged: bool = False
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """One arrangement of a world: its pull requests, findings, policy and what may happen.

    `allowed` maps acts to how often they may happen in all (`a|b`: together); an act that is not in
    it happens as often as the state lets it, unless it is in `never`. `symmetries` are the
    renamings of findings, pull requests and paths that leave the arrangement as it is.
    """

    name: str
    kinds: tuple[Kind, ...]
    limits: Limits
    pulls: int = 1
    paths: int = 1
    bots: frozenset[int] = frozenset()
    mode: HandoffMode = HandoffMode.AUTO
    base: str = "main"
    minimum_severity: Severity = Severity.WARNING
    targets: tuple[str, ...] = ("red", "purple")
    allowed: tuple[tuple[str, int], ...] = ()
    never: frozenset[str] = frozenset()
    max_introduced: int = 1
    budgeted: bool = False
    start: State | None = None
    symmetries: tuple[Renaming, ...] = ()
    places: dict[str, int] = field(default_factory=dict, compare=False)
    memory: dict[Any, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for place, (names, _) in enumerate(self.allowed):
            self.places.update(dict.fromkeys(names.split("|"), place))

    def initial(self) -> State:
        """All pull requests open, nothing handed off."""
        return self.start or State(
            pulls=(Pull(),) * self.pulls,
            findings=(Finding(),) * len(self.kinds),
            left=tuple(count for _, count in self.allowed),
            path_tasks=(0,) * self.paths,
        )

    def may(self, state: State, act: str) -> bool:
        """Whether the world still allows this act."""
        if act in self.never:
            return False
        place = self.places.get(act)
        return place is None or state.left[place] > 0

    def used(self, state: State, act: str) -> State:
        """The state with one such act fewer left."""
        place = self.places.get(act)
        if place is None:
            return state
        left = list(state.left)
        left[place] -= 1
        return state._replace(left=tuple(left))

    def allows(self, act: str) -> int:
        """How often a limited act may happen in all; 0 for one that is not listed."""
        place = self.places.get(act)
        return 0 if place is None or act in self.never else self.allowed[place][1]


class Renaming(NamedTuple):
    """A renaming: the new place of every pull request, finding and path."""

    pulls: tuple[int, ...]
    findings: tuple[int, ...]
    paths: tuple[int, ...]


def bits(mask: int) -> Iterator[int]:
    """The places in a mask, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def canonical(state: State, setting: Setting) -> State:
    """The same for all states that differ by a renaming alone, or by the order of tasks that do not
    wait for each other."""
    state = _sorted_tasks(state)
    if setting.symmetries:
        renamed = (
            _sorted_tasks(_renamed(state, names, setting.memory)) for names in setting.symmetries
        )
        state = min([state, *renamed], key=_order)
    # One copy of each part serves all states: a world of millions of them fits into memory.
    shared = setting.memory.setdefault
    return state._replace(
        pulls=shared(state.pulls, state.pulls),
        findings=shared(state.findings, state.findings),
        tasks=shared(state.tasks, tuple(shared(task, task) for task in state.tasks)),
        keys=shared(state.keys, state.keys),
    )


def _order(state: State) -> tuple[object, ...]:
    return (
        state.pulls,
        tuple(map(_sortable, state.findings)),
        tuple(map(_key, state.tasks)),
        state.path_tasks,
    )


def _sortable(finding: Finding) -> tuple[object, ...]:
    return finding._replace(covered=str(finding.covered))


def _key(task: Task) -> tuple[object, ...]:
    return task


def _sorted_tasks(state: State) -> State:
    """Waiting tasks keep their order, for it decides who goes first; else it means nothing."""
    if len(state.tasks) < 2:
        return state
    waiting = tuple(task for task in state.tasks if task.state is TaskState.WAITING)
    others = sorted(task for task in state.tasks if task.state is not TaskState.WAITING)
    return state._replace(tasks=(*others, *waiting))


def _renamed(state: State, names: Renaming, memory: dict[Any, Any]) -> State:
    findings = [Finding()] * len(state.findings)
    for old, new in enumerate(names.findings):
        findings[new] = state.findings[old]
    pulls = [Pull()] * len(state.pulls)
    for old, new in enumerate(names.pulls):
        pulls[new] = state.pulls[old]
    path_tasks = [0] * len(state.path_tasks)
    for old, new in enumerate(names.paths):
        path_tasks[new] = state.path_tasks[old]
    tasks = tuple(_renamed_task(task, names, memory) for task in state.tasks)
    return state._replace(
        pulls=tuple(pulls),
        findings=tuple(findings),
        tasks=tasks,
        path_tasks=tuple(path_tasks),
    )


def _renamed_task(task: Task, names: Renaming, memory: dict[Any, Any]) -> Task:
    found: Task | None = memory.get((names, task))
    if found is None:
        found = memory[names, task] = _rename_task(task, names)
    return found


def _rename_task(task: Task, names: Renaming) -> Task:
    count = len(names.findings)

    def of_findings(mask: int) -> int:
        if mask < 0:
            return mask
        renamed = mask >> count << count
        for old in bits(mask & ((1 << count) - 1)):
            renamed |= 1 << names.findings[old]
        return renamed

    def of_paths(mask: int) -> int:
        return sum(1 << names.paths[old] for old in bits(mask))

    return task._replace(
        pull=names.pulls[task.pull],
        findings=of_findings(task.findings),
        ordered=of_findings(task.ordered),
        paths=of_paths(task.paths),
        rounds=tuple(item._replace(blocking=of_findings(item.blocking)) for item in task.rounds),
        fixed=of_findings(task.fixed),
        changed=of_paths(task.changed),
        proposed=of_paths(task.proposed),
        broken=of_findings(task.broken),
        flips=of_findings(task.flips),
        upgraded=of_findings(task.upgraded),
    )
