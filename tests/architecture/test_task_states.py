"""A fix task changes its state where the guards are asked, and nowhere else.

`loop_guards.move_task` is what the halting of the loop is proved for; a state that is written past
it would be outside the proof.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
STATES = frozenset({"FixTaskState", "TaskState"})
ALLOWED = {"app/store/fixtasks.py": ["_carry_out"]}
"""The functions that write a task's state: the one to which a `TaskDecision` is given."""


def writers(source: str) -> list[str]:
    """The functions that give a fix task a state: once per place, in their order.

    A state of something else has another enum and another kind of row; where neither the value
    nor the row's annotation says whose state it is, it is taken for a task's.
    """
    return [name for name, node in _statements(ast.parse(source), "") if _writes(node)]


def _statements(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        within = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else inside
        yield within, child
        yield from _statements(child, within)


def _writes(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=targets, value=value):
            return any(_gives(target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return _gives(target, value)
        case ast.AugAssign(target=ast.Attribute(attr="state", value=row)):
            return _is_task(row)
        case ast.Call(func=ast.Name(id="setattr"), args=[row, ast.Constant(value="state"), _]):
            return _is_task(row)
        case ast.Call(func=ast.Attribute(attr="values"), keywords=keywords):
            return any(word.arg == "state" and _names_state(word.value) for word in keywords)
        case _:
            return False


def _gives(target: ast.expr, value: ast.expr) -> bool:
    """Whether this assigns a task's state, alone or as one of several values."""
    if isinstance(target, ast.Tuple):
        given = value.elts if isinstance(value, ast.Tuple) else [value] * len(target.elts)
        return any(_gives(*pair) for pair in zip(target.elts, given, strict=False))
    if not isinstance(target, ast.Attribute) or target.attr != "state":
        return False
    return _is_task(target.value) or _names_state(value)


def _is_task(row: ast.expr) -> bool:
    """Whether the row is a task by its name: `task`, `fix_task`, `own_task`, `facts.task`."""
    name = (
        row.attr if isinstance(row, ast.Attribute) else row.id if isinstance(row, ast.Name) else ""
    )
    return name == "task" or name.endswith("_task")


def _names_state(value: ast.expr) -> bool:
    return any(isinstance(part, ast.Name) and part.id in STATES for part in ast.walk(value))


def test_only_the_guards_move_a_task() -> None:
    """No module but the store's writes a task's state, and there one function does."""
    found = {
        path.relative_to(ROOT).as_posix(): writers(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "app").rglob("*.py"))
    }
    assert {path: names for path, names in found.items() if names} == ALLOWED


PLANTED = """
def a(task: FixTask) -> None:
    task.state = said.state
def b(row: FixTask) -> None:
    row.state, row.turns = FixTaskState.FIXING, 1
async def c(facts: Facts) -> None:
    facts.task.state = after
def d(row: FixTask, ends: bool) -> None:
    row.state = TaskState.CLOSED if ends else row.state
def e(task: FixTask) -> None:
    setattr(task, "state", word)
    task.state, task.state_reason = pair
def f() -> None:
    update(FixTask).values(state=FixTaskState.FAILED)
"""
HARMLESS = """
def a(task: FixTask) -> bool:
    task.state_reason = "stopped"
    return task.state is FixTaskState.FIXING
def b(job: Job, run: ReviewRun) -> None:
    job.state, run.state = JobState.QUEUED, RunState.DONE
    update(Job).values(state=JobState.QUEUED)
def c() -> FixTask:
    return FixTask(state=FixTaskState.QUEUED)
"""


def test_a_state_written_elsewhere_is_noticed() -> None:
    """However it is written; looking at a state, and other rows' states, are nobody's harm."""
    assert writers(PLANTED) == ["a", "b", "c", "d", "e", "e", "f"]
    assert writers(HARMLESS) == []
