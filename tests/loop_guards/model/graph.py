"""Breadth-first exploration of a world, and what its graph says about halting.

Every state is met once; from each, every act is tried. A path can cost without end only if some
cycle costs, so the strongly connected components are what proves halting: inside one every act must
be free. What is left between components has no cycles, and its longest path is the most that any
schedule can cost.
"""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tests.loop_guards.model.check import Violated
from tests.loop_guards.model.moves import Cost, Step

S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True, slots=True)
class World(Generic[S]):
    """What the explorer needs of a world. `acts` lists every step from a state; `canonical` gives
    states that differ by names alone one form; `check` raises Violated for a state that must not
    be."""

    name: str
    initial: S
    acts: Callable[[S], Iterable[Step]]
    canonical: Callable[[S], S]
    check: Callable[[S], None]


@dataclass(slots=True)
class Explored(Generic[S]):
    """A world's graph. Edges of state n are `targets[starts[n]:starts[n + 1]]`, with an index into
    `costs` each. `pairs` counts distinct (state, act) pairs, an act with all it is about."""

    states: list[S] = field(default_factory=list)
    starts: array[int] = field(default_factory=lambda: array("q", [0]))
    targets: array[int] = field(default_factory=lambda: array("q"))
    edge_costs: array[int] = field(default_factory=lambda: array("H"))
    costs: list[Cost] = field(default_factory=list)
    parents: list[tuple[int, str]] = field(default_factory=list)
    fired: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    complete: bool = True

    @property
    def pairs(self) -> int:
        """Distinct (canonical state, act) pairs."""
        return len(self.targets)

    def trace(self, number: int) -> tuple[str, ...]:
        """The acts that lead from the start to a state."""
        acts: list[str] = []
        while number:
            number, act = self.parents[number]
            acts.append(act)
        return tuple(reversed(acts))


def explore(world: World[S], *, most: int | None = None) -> Explored[S]:
    """Every state reachable in the world, or the first `most` pairs of them.

    Raises Violated with the acts that lead to what must not be.
    """
    began = time.perf_counter()
    found: Explored[S] = Explored()
    start = world.canonical(world.initial)
    numbers: dict[S, int] = {start: 0}
    found.states.append(start)
    found.parents.append((0, ""))
    known_costs: dict[Cost, int] = {}
    number = 0
    while number < len(found.states):
        state = found.states[number]
        try:
            world.check(state)
            _expand(world, found, numbers, known_costs, number)
        except Violated as error:
            error.trace = (*found.trace(number), *error.trace)
            raise
        number += 1
        if most is not None and found.pairs >= most:
            found.complete = number == len(found.states)
            break
    found.seconds = time.perf_counter() - began
    return found


def _expand(
    world: World[S],
    found: Explored[S],
    numbers: dict[S, int],
    known_costs: dict[Cost, int],
    number: int,
) -> None:
    state = found.states[number]
    last = "?"
    try:
        for act, about, after, cost in world.acts(state):
            last = f"{act} {about}"
            after = state if after is state else world.canonical(after)
            target = numbers.get(after)
            if target is None:
                target = numbers[after] = len(found.states)
                found.states.append(after)
                found.parents.append((number, f"{act} {_words(about)}"))
            found.targets.append(target)
            place = known_costs.get(cost)
            if place is None:
                place = known_costs[cost] = len(found.costs)
                found.costs.append(cost)
            found.edge_costs.append(place)
            found.fired[act] += 1
    except Violated as error:
        error.trace = (f"after {last}", *error.trace)
        raise
    found.starts.append(len(found.targets))


def _words(about: Any) -> str:
    return "" if about is None else str(about)


def components(found: Explored[S]) -> Sequence[int]:
    """The strongly connected component of each state, numbered so that edges between components
    lead to smaller numbers (Tarjan's algorithm, without recursion)."""
    count = len(found.starts) - 1
    index, low = array("q", [-1]) * count, array("q", [0]) * count
    component = array("q", [-1]) * count
    stack: list[int] = []
    clock = named = 0
    for root in range(count):
        if index[root] >= 0:
            continue
        work = [(root, found.starts[root])]
        while work:
            node, edge = work.pop()
            if edge == found.starts[node] and index[node] < 0:
                index[node] = low[node] = clock
                clock += 1
                stack.append(node)
            advanced = False
            end = found.starts[node + 1]
            while edge < end:
                target = found.targets[edge]
                edge += 1
                if target >= count:
                    continue
                if index[target] < 0:
                    work.append((node, edge))
                    work.append((target, found.starts[target]))
                    advanced = True
                    break
                if component[target] < 0:
                    low[node] = min(low[node], index[target])
            if advanced:
                continue
            if low[node] == index[node]:
                while True:
                    member = stack.pop()
                    component[member] = named
                    if member == node:
                        break
                named += 1
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
    return component


def longest(found: Explored[S]) -> Cost:
    """The most that any path costs, each dimension for itself.

    Raises Violated("halts") with the way to a cycle that costs.
    """
    component = components(found)
    count = len(component)
    members: list[list[int]] = [[] for _ in range(max(component, default=-1) + 1)]
    for node in range(count):
        members[component[node]].append(node)
    free = Cost()
    best = [[0] * len(free) for _ in members]
    for place, nodes in enumerate(members):
        most = best[place]
        for node in nodes:
            for edge in range(found.starts[node], found.starts[node + 1]):
                target, cost = found.targets[edge], found.costs[found.edge_costs[edge]]
                if target >= count:
                    continue
                other = component[target]
                if other == place:
                    if cost != free:
                        raise Violated("halts", f"a cycle costs {cost}", found.trace(node))
                    continue
                beyond = best[other]
                for dimension, weight in enumerate(cost):
                    most[dimension] = max(most[dimension], beyond[dimension] + weight)
    return Cost(*best[component[0]]) if best else free
