"""Explore worlds and print what was found: `python -m tests.loop_guards.model.explore --help`."""

# ruff: noqa: T201 - a table that is printed
from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loop_guards import Bound
from tests.loop_guards.model.asked import GIVEN
from tests.loop_guards.model.check import Violated
from tests.loop_guards.model.everything import EVERYTHING, random_run
from tests.loop_guards.model.field import Setting
from tests.loop_guards.model.fixing import bound_of, check_bound, fixing_world
from tests.loop_guards.model.graph import Explored, S, explore, longest
from tests.loop_guards.model.moves import NOTHING, Cost
from tests.loop_guards.model.sources import SourceSetting, source_world
from tests.loop_guards.model.worlds import (
    the_bound_reached,
    world_a,
    world_b,
    world_c,
    world_d,
    world_e,
    world_f,
    world_g,
)

LETTERS = "abcdefg"


@dataclass(frozen=True, slots=True)
class Row:
    """What exploring one arrangement gave. `most` is the longest path, `allowed` the bound."""

    name: str
    states: int
    pairs: int
    seconds: float
    complete: bool
    most: Cost
    allowed: Bound
    fired: Counter[str]


def settings_of(letter: str, *, thorough: bool) -> Iterator[Setting | SourceSetting]:
    """The arrangements of a world; the thorough ones have more of everything."""
    match letter:
        case "a":
            yield from world_a(thorough=thorough)
        case "b":
            yield the_bound_reached()
            yield from world_b(thorough=thorough)
        case "c":
            yield from world_c(thorough=thorough)
        case "d":
            yield from world_d(thorough=thorough)
        case "e":
            yield from world_e()
        case "f":
            yield from world_f()
        case "g":
            yield from world_g()
        case _:
            raise ValueError(f"there is no world {letter!r}: it is one of {', '.join(LETTERS)}")


def row(setting: Setting | SourceSetting, *, most: int | None = None) -> Row:
    """Explore one arrangement, and hold its longest path against the bound."""
    if isinstance(setting, SourceSetting):
        return _row(setting.name, explore(source_world(setting), most=most), setting.bound)
    found = explore(fixing_world(setting), most=most)
    setting.memory.clear()
    return _row(setting.name, found, bound_of(setting))


def _row(name: str, found: Explored[S], allowed: Bound) -> Row:
    costly = longest(found)
    check_bound(costly, allowed)
    return Row(
        name=name,
        states=len(found.states),
        pairs=found.pairs,
        seconds=found.seconds,
        complete=found.complete,
        most=costly,
        allowed=allowed,
        fired=found.fired,
    )


def line(item: Row) -> str:
    """One line of the table: each maximum beside what the bound allows."""
    maxima = (
        (item.most.tasks, item.allowed.fix_tasks),
        (item.most.source_rounds, item.allowed.source_rounds),
        (item.most.fix_rounds, item.allowed.fix_rounds),
        (item.most.turns, item.allowed.turns),
        (item.most.verify_runs, item.allowed.verify_runs),
    )
    words = "  ".join(f"{cost:>2}/{limit:<3}" for cost, limit in maxima)
    cut = "" if item.complete else "  (cut)"
    return f"{item.name:<28}{item.states:>10,}{item.pairs:>12,}{item.seconds:>8.1f}  {words}{cut}"


HEAD = (
    f"{'world':<28}{'states':>10}{'pairs':>12}{'seconds':>8}"
    "  tasks   source  rounds  turns   verify"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if every invariant holds, 1 with the shortest way to one that does not, 2 if
    nothing was asked for that there is."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.worlds) - set(LETTERS)):
        parser.error(f"there is no world {', '.join(unknown)}: the worlds are {LETTERS}")
    began, pairs, fired = time.perf_counter(), 0, Counter[str]()
    print(HEAD)
    try:
        for letter in options.worlds:
            of_world = 0
            for setting in settings_of(letter, thorough=options.thorough):
                if options.only not in setting.name:
                    continue
                item = row(setting, most=options.most)
                print(line(item), flush=True)
                of_world += item.pairs
                fired.update({f"{letter}: {act}": count for act, count in item.fired.items()})
            print(f"{'':<28}{'world ' + letter:>10}{of_world:>12,}", flush=True)
            pairs += of_world
        _runs(options.runs)
    except Violated as error:
        print(f"\nviolated: {error}")
        return 1
    if not pairs:
        parser.error(f"no arrangement of {options.worlds} has {options.only!r} in its name")
    print(f"\n{pairs:,} distinct (state, act) pairs, {time.perf_counter() - began:.0f} s")
    if options.coverage:
        _coverage(fired)
    return 0


def _runs(count: int) -> None:
    if not count:
        return
    began, most = time.perf_counter(), NOTHING
    for seed in range(count):
        most = Cost(*map(max, most, random_run(EVERYTHING, seed)))
    seconds = time.perf_counter() - began
    print(f"{count:,} random runs of everything at once, {seconds:.0f} s, at most {most}")


def _coverage(fired: Counter[str]) -> None:
    print("\nhow often each act fired")
    for act, count in sorted(fired.items()):
        print(f"  {act:<34}{count:>12,}")
    print("\nhow many different facts got each reason")
    for (decision, reason), count in sorted(GIVEN.items()):
        print(f"  {decision:<18}{reason:<24}{count:>10,}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="?", default=LETTERS, help="their letters; default: all")
    parser.add_argument("--thorough", action="store_true", help="more of everything: hours")
    parser.add_argument("--only", default="", help="arrangements with these words in their name")
    parser.add_argument("--most", type=int, help="cut each arrangement at so many pairs")
    parser.add_argument("--runs", type=int, default=0, help="and so many random runs")
    parser.add_argument("--coverage", action="store_true", help="also acts and reasons")
    return parser


if __name__ == "__main__":
    sys.exit(main())
