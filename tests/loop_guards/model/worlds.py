"""The worlds that are explored, and why together they cover the product.

No single world can hold everything: its states multiply. What makes a set of small worlds enough is
that the rules know few things that reach from one task to another:

- *the lease* on a path, which tasks on one base share: worlds (a) and (d) put up to three merges on
  one and two files, so that tasks work side by side, wait, are joined and wake each other;
- *the stop, the kill switch and the purse* of a lineage: (b), (c) and (g);
- *the plan of a merge*, asked at the merge, at an order and at a resume: (b), (c) and (f) let a
  human act before, between and after these, with deliveries that are late, doubled or stale.

Everything else is a matter of one task, and a task is the same in every world: an adversarial
fixer (fixes all, some or none, breaks others, reverts, widens, pushes nothing, fails, falls silent)
and an adversarial reviewer (drops, re-raises, raises new criticals and warnings, upgrades, looks at
half).
Two tasks that share neither a path nor a lineage can't meet, so more than two files or three pull
requests repeat what is there; a third finding in a file is to every rule what the second is, an
element of a set that is empty or not, and its orders are its own. A pair of human overrides (b) is
where one act can undo another's premise; longer chains of overrides are in (c), in the state
machine and in the random runs, which mix all acts at cap 5. Pull requests before their merge meet
fix tasks only in the plan, so ping-pong has a world of its own: (e).

Symmetric arrangements are explored once: which pull request, finding or file is called first means
nothing to a guard, except for the order in which waiting tasks wake, which is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement

from loop_guards import HandoffMode, Limits, Origin, Severity
from tests.loop_guards.model.field import Kind, Renaming, Setting
from tests.loop_guards.model.humans import HUMAN_ACTS
from tests.loop_guards.model.sources import SourceSetting

RARE = frozenset(
    {
        *HUMAN_ACTS,
        "machine_closes_fix",
        "machine_reopens_fix",
        "kill_switch",
        "command",
        "superseded",
        "unavailable",
        "short",
        "upgrades",
        "base_loses",
        "bots_command",
        "verify",
        "close",
        "reopen",
        "delivery_closed",
    }
)
"""Acts that a world has only if it names them."""

CAP3 = Limits(max_review_iterations=3, max_fix_tasks=2, path_tasks=2)
CAP2 = Limits(max_review_iterations=2, max_fix_tasks=2)


def arrangement(
    name: str,
    kinds: Iterable[Kind],
    limits: Limits = CAP3,
    *,
    free: Iterable[str] = (),
    allowed: Iterable[tuple[str, int]] = (),
    without: Iterable[str] = (),
    **different: object,
) -> Setting:
    """A setting in which rare acts happen only if they are `free` or counted in `allowed`, and
    those `without` never."""
    kinds, allowed = tuple(kinds), tuple(allowed)
    named = {*free, *(act for names, _ in allowed for act in names.split("|"))}
    paths = 0
    for kind in kinds:
        paths |= kind.also | (0 if kind.path is None else 1 << kind.path)
    return Setting(
        name=name,
        kinds=kinds,
        limits=limits,
        pulls=1 + max(kind.pull for kind in kinds),
        paths=max(1, paths.bit_length()),
        never=(RARE - named) | {*without},
        allowed=allowed,
        **different,  # type: ignore[arg-type]  # fields of Setting
    )


def world_a(*, thorough: bool) -> Iterator[Setting]:
    """Three source pull requests, three findings, two files, two targets, cap 3, no overrides.

    The thorough one has findings first raised on the fix besides, which multiplies everything.
    """
    new = int(thorough)
    yield arrangement(
        "a: two on one file",
        (Kind(0, 0, target="red"), Kind(1, 0, target="red"), Kind(2, 1, target="purple")),
        symmetries=(Renaming((1, 0, 2), (1, 0, 2), (0, 1)),),
        max_introduced=new,
    )
    yield arrangement(
        "a: a fix of both files",
        (
            Kind(0, 0, also=0b10, target="red"),
            Kind(1, 0, Severity.CRITICAL, target="purple"),
            Kind(2, 1, target="red"),
        ),
        max_introduced=new,
    )
    yield arrangement(
        "a: three on one file",
        (Kind(0, 0), Kind(1, 0), Kind(2, 0)),
        symmetries=tuple(
            Renaming(order, order, (0,))
            for order in ((1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1))
        ),
        max_introduced=new,
    )


def world_b(*, thorough: bool) -> Iterator[Setting]:
    """One pull request, cap 3, each pair of kinds of human override."""
    for pair in combinations_with_replacement(HUMAN_ACTS, 2):
        allowed = {act: pair.count(act) for act in pair}
        # What an act needs to mean anything comes with it.
        if "reopen_fix" in allowed:
            allowed["close_fix"] = max(allowed.get("close_fix", 0), allowed["reopen_fix"])
        if "resume" in allowed:
            allowed["stop"] = max(allowed.get("stop", 0), allowed["resume"])
        if thorough:
            allowed |= {"superseded": 1, "close|reopen": 2}
        free = ("bots_command", "delivery_closed") if thorough else ("bots_command",)
        kinds = (Kind(0, 0), Kind(0, 0)) if thorough else (Kind(0, 0),)
        yield arrangement(
            f"b: {'+'.join(pair)}",
            kinds,
            free=free,
            allowed=tuple(allowed.items()),
            max_introduced=int(thorough),
        )


def the_bound_reached() -> Setting:
    """The smallest world in which every dimension of the bound is reached: the automatic task is
    driven to its cap, resumed, driven there again and closed; then its finding is ordered, and the
    new task spends all it has."""
    return arrangement(
        "b: the bound reached",
        (Kind(0, 0),),
        Limits(max_review_iterations=3, max_fix_tasks=1),
        free=("verify",),
        allowed=(("order", 1), ("close_fix", 1), ("resume_task", 1)),
        max_introduced=0,
    )


def world_c(*, thorough: bool) -> Iterator[Setting]:
    """Two findings, two files, cap 2, all overrides, two (or three) of them in one schedule."""
    overrides = 2 + thorough
    machines = ("machine_closes_fix", "machine_reopens_fix", "kill_switch", "command")
    everything = "|".join((*HUMAN_ACTS, *machines))
    yield arrangement(
        "c: all overrides",
        (Kind(0, 0), Kind(0, 1, Severity.SUGGESTION)),
        CAP2,
        free=("bots_command",),
        allowed=((everything, overrides),),
        max_introduced=int(thorough),
    )
    yield arrangement(
        "c: overrides and faults",
        (Kind(0, 0, Severity.SUGGESTION),),
        CAP2,
        free=("bots_command", "short", "upgrades", "delivery_closed"),
        allowed=(
            (everything, overrides),
            ("superseded|unavailable", 1),
            ("close|reopen", 3),
            ("base_loses", 1),
        ),
        minimum_severity=Severity.SUGGESTION,
        max_introduced=int(thorough),
    )


def world_d(*, thorough: bool) -> Iterator[Setting]:
    """Two pull requests on one file with leases, cap 3, one resume."""
    yield arrangement(
        "d: leases and a resume",
        (Kind(0, 0), Kind(1, 0)),
        allowed=(("resume_task", 1), ("superseded", 1)),
        symmetries=(Renaming((1, 0), (1, 0), (0,)),),
        max_introduced=int(thorough),
    )
    yield arrangement(
        "d: half a lease",
        (Kind(0, 0, also=0b10), Kind(1, 1)),
        allowed=(("resume_task", 1),),
        max_introduced=int(thorough),
    )


def world_e() -> Iterator[SourceSetting]:
    """Ping-pong with two outside bots."""
    yield SourceSetting("e: one pull request", Limits(pingpong_cap=3), pulls=1, human_acts=3)
    yield SourceSetting(
        "e: two pull requests",
        Limits(pingpong_cap=2),
        pulls=2,
        human_acts=1,
        threads=False,
        drafts=False,
    )
    yield SourceSetting(
        "e: one too many",
        Limits(pingpong_cap=1, max_bot_prs_per_day=1),
        pulls=2,
        human_acts=1,
        human_opens=False,
        threads=False,
    )


def world_f() -> Iterator[Setting]:
    """Findings of verify runs and after the merge, of bots, and what a policy leaves out."""
    foreign = (Kind(0, 0, origin=Origin.VERIFY), Kind(0, 1, origin=Origin.POST_MERGE))
    orders = (("order", 2),)
    yield arrangement(
        "f: verify and post-merge",
        foreign,
        CAP2,
        free=("verify",),
        allowed=orders,
        max_introduced=0,
    )
    of_bot = (Kind(0, 0, Severity.CRITICAL), Kind(0, 0, origin=Origin.PRE_EXISTING))
    yield arrangement("f: a bot's", of_bot, CAP2, allowed=orders, bots=frozenset({0}))
    left_out = (
        Kind(0, None),
        Kind(0, 0, acknowledged=True),
        Kind(0, 0, Severity.SUGGESTION),
        Kind(0, 0, origin=Origin.PRE_EXISTING),
    )
    yield arrangement(
        "f: left out", left_out, Limits(max_review_iterations=1), allowed=(("order", 1),)
    )
    one = (Kind(0, 0),)
    for mode in (HandoffMode.MANUAL, HandoffMode.OFF):
        yield arrangement(f"f: mode {mode}", one, CAP2, allowed=orders, mode=mode)
    yield arrangement("f: other base", one, CAP2, allowed=orders, base="legacy")
    many = tuple(Kind(0, path) for path in range(3))
    small = Limits(max_review_iterations=1, max_fix_tasks=1, path_tasks=1, verify_cycles=1)
    yield arrangement("f: more files than tasks", many, small, free=("verify",))
    halts = (("stop|kill_switch", 2), ("resume", 1), ("unqueue", 1))
    two = (Kind(0, 0), Kind(0, 0))
    yield arrangement("f: verify under a stop", two, CAP2, free=("verify",), allowed=halts)
    yield arrangement(
        "f: an unstable reviewer",
        two,
        Limits(max_review_iterations=5, max_fix_tasks=1),
        without=("widens", "reverts", "breaks_others", "pushes_nothing", "turn_fails", "silence"),
        max_introduced=0,
    )


def world_g() -> Iterator[Setting]:
    """Two tasks at once on one purse, with reservations."""
    purse = Limits(max_review_iterations=3, max_fix_tasks=2, budget_input_tokens=9)
    yield arrangement(
        "g: one purse",
        (Kind(0, 0), Kind(0, 1)),
        purse,
        allowed=(("resume_task", 1),),
        budgeted=True,
        max_introduced=0,
    )
