"""The numbers of the page of the guards: the constants, and the bound that follows from them."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import timedelta
from typing import Any

import loop_guards as guards
from app.domain.policy import PolicyLimits, Section
from app.policy.guards_meanings import FIXED_LIMITS
from app.policy.guards_text import one_line, prose, table
from loop_guards import Acts, Bound, Limits

_RATION = """\
The A sessions of an agent are kept by `app/agents/rationed.py`: for each agent of a round, and for
a turn as a whole, also when the repository's own check fails and the fixer goes on. A session is
written down before it begins, so one that a worker's death cut short is not given back. What these
numbers are for a policy file, `mergeward policy explain` says.
"""


_UNITS = {"budget_micro_dollars": " millionths", "budget_model_seconds": " seconds"}
"""Units that are not those of the policy's key."""


def constants_section() -> str:
    """Every field of `Limits`: its default, who may set it, what it means."""
    keys = policy_keys()
    described = _meanings(keys)
    rows = (
        (
            f"`{item.name}`",
            f"{shown(item.default)}{_UNITS.get(item.name, '')}",
            f"`limits.{keys[item.name]}`" if item.name in keys else "",
            described[item.name],
        )
        for item in fields(Limits)
    )
    heads = ("constant", "default", "key of the policy", "meaning")
    return f"## The constants\n\n{table(heads, rows)}\n"


def _meanings(keys: dict[str, str]) -> dict[str, str]:
    """A meaning for each constant: the words of its policy key, or ours. Raises ValueError when one
    is missing or too many."""
    said = {name: _description(key) for name, key in keys.items()} | dict(FIXED_LIMITS)
    names = {item.name for item in fields(Limits)}
    if said.keys() != names or keys.keys() & FIXED_LIMITS.keys():
        odd = sorted((said.keys() ^ names) | (keys.keys() & FIXED_LIMITS.keys()))
        raise ValueError(f"app/policy/guards_meanings.py: FIXED_LIMITS is wrong about {odd}")
    return said


def policy_keys() -> dict[str, str]:
    """Which constant which key under `limits` sets, found by setting one after the other."""
    shipped = PolicyLimits()
    before = asdict(shipped.for_guards())
    found = {}
    for key in _leaves(PolicyLimits):
        after = asdict(_with(shipped, key).for_guards())
        found.update({name: key for name in before if before[name] != after[name]})
    return found


def _leaves(section: type[Section], prefix: str = "") -> list[str]:
    leaves = []
    for name, item in section.model_fields.items():
        inner = item.annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            leaves += _leaves(inner, f"{prefix}{name}.")
        else:
            leaves.append(f"{prefix}{name}")
    return leaves


def _with(limits: Any, key: str) -> Any:
    """The same limits with one of them larger by one."""
    first, _, rest = key.partition(".")
    value = getattr(limits, first)
    return limits.model_copy(update={first: _with(value, rest) if rest else value + 1})


def _description(key: str) -> str:
    section: Any = PolicyLimits
    *outer, last = key.split(".")
    for name in outer:
        section = section.model_fields[name].annotation
    return one_line(section.model_fields[last].description or "")


def shown(value: object) -> str:
    """A constant as people read it."""
    if isinstance(value, timedelta):
        minutes = int(value.total_seconds() // 60)
        days, rest = divmod(minutes, 24 * 60)
        return f"{days} days" if days and not rest else f"{minutes} minutes"
    return f"{value:,}" if isinstance(value, int) else str(value)


def bound_section() -> str:
    """The derivation, and its numbers for one act of each kind under the shipped limits."""
    counted = [item.name for item in fields(Bound)]
    rows = [
        (f"one of `{act.name}`", *_numbers(guards.bound(Limits(), Acts(**{act.name: 1}))))
        for act in fields(Acts)
    ]
    heads = ("after", *(name.replace("_", " ") for name in counted))
    return "\n".join(
        [
            "## The bound",
            "",
            prose(guards.bound),
            "",
            f"`Acts`: {prose(Acts)}",
            "",
            "With the shipped constants, and nothing else done by anybody:",
            "",
            table(heads, rows),
            "",
            _RATION,
        ]
    )


def _numbers(most: Bound) -> tuple[str, ...]:
    return tuple(f"{number:,}" for number in asdict(most).values())
