"""The page that explains the guards, made from the guards: `docs/guards.md`.

`make docs` writes it (`python -m app.policy.guards_doc docs`); a test fails while it is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import loop_guards as guards
from app.policy import guards_questions as questions
from app.policy.guards_meanings import CLOSING
from app.policy.guards_numbers import bound_section, constants_section
from app.policy.guards_questions import Question
from app.policy.guards_tables import (
    acts_table,
    moves_reasons,
    moves_table,
    moves_when,
    reasons_table,
    starters_table,
)
from app.policy.guards_text import listed, one_line, prose, table
from app.store.tables import DecisionRow
from loop_guards import Decision

PAGE_FILE = "guards.md"

_BEGIN = "<!-- begin: made by `make docs` from loop_guards -->\n"
_END = "<!-- end -->"


def with_guards(page: str) -> str:
    """`page` with the lines between its two markers replaced by what the guards say."""
    made = "\n".join(f"{part.strip()}\n" for part in _sections())
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{made}\n{_END}{after}"


def _sections() -> Iterator[str]:
    asked = questions
    yield _stored()
    yield _section("Handoff", (asked.HANDOFF,))
    yield _closing()
    yield _section("The verdict on a fix", (asked.FIX_VERDICT,))
    yield _section("Evidence", (asked.FIXED, asked.RETURN))
    rounds = (asked.MAY_START_ROUND, asked.MAY_START_TURN, asked.AFTER_ROUND)
    yield _section("Rounds and turns of a fix task", rounds)
    yield _section("Verify runs", (asked.MAY_VERIFY,))
    yield _section("May a review start? Ping-pong", (asked.MAY_REVIEW,)) + _starters()
    yield _section("Threads", (asked.THREAD,))
    yield _section("The verdict on other pull requests", (asked.RUBRIC,))
    yield _section("Who acted", (asked.ACTOR,)) + _acts_of_people()
    acts = (asked.ORDER, asked.UNQUEUE, asked.DISMISSAL, asked.STOP, asked.RESUME, asked.GLASS)
    yield _section("What people may do", acts) + _acts()
    yield _life()
    yield constants_section()
    yield bound_section()


def _stored() -> str:
    columns = listed(column.name for column in DecisionRow.metadata.tables["decisions"].columns)
    return f"Columns of `decisions`: {columns}.\n\n{prose(DecisionRow)}"


def _section(title: str, asked: Iterable[Question]) -> str:
    return "\n".join([f"## {title}", "", *(_question(question) for question in asked)])


def _question(question: Question) -> str:
    decisions = tuple(question.decisions())
    outcomes = "" if question.outcomes is guards.Verdict else prose(question.outcomes)
    compared = listed(decisions[0].compared)
    facts = " ".join(one_line(prose(each)) for each in question.facts)
    return "\n".join(
        [
            f"### `{question.ask.__name__}`",
            "",
            prose(question.ask),
            "",
            *([f"Outcomes: {outcomes}", ""] if outcomes else []),
            f"{_manner(decisions)} {_stored_as(question.kind)}",
            "",
            reasons_table(question),
            "",
            f"Compared: {compared}.",
            "",
            f"Facts: {facts}",
            "",
        ]
    )


def _manner(decisions: tuple[Decision, ...]) -> str:
    """Whether what stands after the guard that decides is asked too, as the traces show."""
    if any(said.reasons for said in decisions):
        return "All are asked; `reasons` names all that hold, and the first of them decides."
    if any(asked.reason for said in decisions for asked in said.trace[:-1]):
        return "All are asked; the first that holds decides."
    return "Asked in this order; the first that holds decides, and nothing after it is asked."


def _stored_as(kind: str) -> str:
    if not kind:
        return "Not stored as a row of its own in this version."
    return f"Stored as `{kind}`."


def _closing() -> str:
    rows = ((f"`{said.reason}`", f"`{said.outcome}`", CLOSING[said.reason]) for said in _unmerged())
    return "\n".join(
        [
            "## Closing and coalescing",
            "",
            "### `plan_unmerged`",
            "",
            prose(guards.plan_unmerged),
            "",
            table(("reason", "outcome", "meaning"), rows),
            "",
            "### `plan_merged`",
            "",
            prose(guards.plan_merged),
            "",
            "A finding whose task has no room is refused as `budget` by `task_cap`.",
            "",
            "### `coalesce`",
            "",
            prose(guards.coalesce),
            "",
            prose(guards.TaskPlan),
            "",
        ]
    )


def _unmerged() -> tuple[Decision, ...]:
    decisions = questions.unmerged()
    if {said.reason for said in decisions} != set(CLOSING):
        raise ValueError("app/policy/guards_meanings.py: CLOSING and plan_unmerged differ")
    return decisions


def _starters() -> str:
    return f"\nWhat stops whom:\n\n{starters_table()}\n"


def _acts_of_people() -> str:
    kinds = (
        (
            f"`{kind}`",
            "yes" if guards.asks_for_review(kind) else "",
            "yes" if guards.machine_rounds_after_act(1, kind, by_human=True) == 0 else "",
        )
        for kind in guards.ActKind
    )
    heads = (
        "act",
        "may start a review",
        "sets the count of machines' rounds to zero, if a person's",
    )
    return f"{table(heads, kinds)}\n\n{prose(guards.machine_rounds_after_act)}\n"


def _acts() -> str:
    return (
        "\n### A person's act in each state\n\n"
        "By somebody with write access. Each cell is the outcome, and the reason in brackets.\n\n"
        f"{acts_table()}\n"
    )


def _life() -> str:
    return "\n".join(
        [
            "## The life of a fix task",
            "",
            "### `move_task`",
            "",
            prose(guards.move_task),
            "",
            prose(guards.TaskState),
            "",
            prose(guards.TaskEvent),
            "",
            "What each event makes of each state. `·`: nothing, the event means nothing there.",
            "Where a cell holds several states the facts decide, as the table after it says.",
            "",
            moves_table(),
            "",
            moves_when(),
            "",
            prose(guards.TaskFacts),
            "",
            moves_reasons(),
            "",
        ]
    )


def write_file(folder: Path) -> None:
    """Bring the page in `folder`, the repository's `docs`, up to date."""
    page = folder / PAGE_FILE
    page.write_text(with_guards(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_file(Path(sys.argv[1]))
