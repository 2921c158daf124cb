"""Every act that makes the loop go on stands where the guards' decision is at hand.

`test_wired_by_type` holds the acts we know to their types; this looks through the product for all
of them, so that a new one is noticed.
"""

from __future__ import annotations

import ast
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.domain import permits
from app.domain.effects import CheckConclusion, Effect, ReviewEvent
from loop_guards import Decision, NextDecision, TaskPlan, Verdict

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Act:
    """Something that makes the loop go on, recognised by what it writes.

    `makes`: a call of that name, with `sets` among what it is given, if there is one. `sets` alone:
    that value given to a variable, an attribute or any call. `raises`: that attribute is counted
    up. Whoever does it takes one of `takes`.
    """

    what: str
    takes: frozenset[str]
    makes: str | None = None
    sets: str | None = None
    raises: str | None = None

    def is_done_by(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=func, args=args, keywords=keywords):
                given = [*args, *(keyword.value for keyword in keywords)]
                named = self.makes is None or _name(func) == self.makes
                return named and (self.sets is None or self._among(given)) and not self.raises
            case ast.AugAssign(target=ast.Attribute(attr=name)):
                return name == self.raises
            case ast.Assign(targets=[ast.Tuple()], value=ast.Tuple(elts=values)):
                return self.makes is None and self._among(values)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                return self.makes is None and self._among([value])
            case _:
                return False

    def _among(self, values: list[ast.expr]) -> bool:
        return self.sets is not None and any(_name(value) == self.sets for value in values)


def _name(node: ast.expr) -> str | None:
    """`Class.MEMBER` or `name`, None for everything else."""
    match node:
        case ast.Attribute(value=ast.Name(id=owner), attr=member):
            return f"{owner}.{member}"
        case ast.Name(id=name):
            return name
        case _:
            return None


SEEN = (
    Act("creates a fix task", frozenset({"TaskPlan"}), makes="FixTask"),
    Act("starts a review run", frozenset({"ReviewPermit"}), sets="RunState.RUNNING"),
    Act("begins a turn", frozenset({"TurnPermit"}), sets="TaskEvent.TURN_BEGUN"),
    Act("asks the fixer's model", frozenset({"TurnPermit"}), "agent_task", "AgentName.FIXER"),
    Act("resumes a task", frozenset({"ResumePermit"}), sets="TaskEvent.RESUME"),
    Act("counts a resume", frozenset({"ResumePermit"}), raises="resumes"),
    Act("gives a task rounds", frozenset({"ResumePermit"}), raises="allowance"),
    Act("starts a verify run", frozenset({"VerifyDecision"}), sets="Trigger.VERIFY"),
)


def unguarded(source: str, acts: tuple[Act, ...] = SEEN) -> list[str]:
    """The acts in the source that stand where nothing says that the guards were asked."""
    return [
        f"line {line}: {act.what} without {' or '.join(sorted(act.takes))}"
        for act, line, names in done_in(source, acts)
        if not names & act.takes
    ]


def done_in(source: str, acts: tuple[Act, ...] = SEEN) -> Iterator[tuple[Act, int, set[str]]]:
    """Each act in the source: which, on which line, and the types that its place takes."""

    def within(node: ast.AST, around: set[str]) -> Iterator[tuple[Act, int, set[str]]]:
        for child in ast.iter_child_nodes(node):
            taken = around | _taken(child)
            for act in acts:
                if isinstance(child, ast.expr | ast.stmt) and act.is_done_by(child):
                    yield act, child.lineno, taken
            yield from within(child, taken)

    yield from within(ast.parse(source), set())


def _taken(node: ast.AST) -> set[str]:
    """The names in the annotations of a function's parameters, or of a class's fields."""
    match node:
        case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
            every = (*args.posonlyargs, *args.args, *args.kwonlyargs)
            hints = [arg.annotation for arg in every if arg.annotation is not None]
        case ast.ClassDef(body=body):
            hints = [item.annotation for item in body if isinstance(item, ast.AnnAssign)]
        case _:
            return set()
    return {part.id for hint in hints for part in ast.walk(hint) if isinstance(part, ast.Name)}


SOURCES = [path for path in sorted((ROOT / "app").rglob("*.py")) if "sandbox" not in path.parts]


def test_every_act_in_the_product_takes_a_decision() -> None:
    """Who creates, begins or resumes something takes what only the guards can make."""
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    found = {str(path.relative_to(ROOT)): unguarded(text) for path, text in texts.items()}
    assert {path: acts for path, acts in found.items() if acts} == {}
    done = {act.what for text in texts.values() for act, _, _ in done_in(text)}
    # No verify run exists yet; its act is looked for so that the first one is asked about.
    assert done >= {act.what for act in SEEN} - {"starts a verify run"}


UNGUARDED = """
def a(plan: HandoffDecision) -> None:
    FixTask(key="k")
async def b(session: AsyncSession, decision: Decision) -> None:
    session.add(ReviewRun(state=RunState.RUNNING))
async def c(task: FixTask) -> None:
    await move(session, task, TaskEvent.TURN_BEGUN, now=now)
def d(task: FixTask, rounds: int) -> None:
    task.allowance += rounds
    task.resumes += 1
class E:
    facts: TurnFacts
    async def work(self) -> None:
        agent_task(AgentName.FIXER, "prompt")
def f(permit: TurnPermit) -> None:
    start(trigger=Trigger.VERIFY)
"""
GUARDED = """
def a(plan: TaskPlan | None) -> None:
    FixTask(key="k")
async def b(session: AsyncSession, *, permit: ReviewPermit) -> None:
    session.add(ReviewRun(state=RunState.RUNNING))
class E:
    permit: TurnPermit
    async def work(self) -> None:
        agent_task(AgentName.FIXER, "prompt")
def f(task: FixTask) -> bool:
    return task.state is FixTaskState.FIXING or RunState.RUNNING in (task.state,)
WORKABLE = (FixTaskState.QUEUED, FixTaskState.FIXING)
"""


def test_an_act_without_a_decision_is_noticed(tmp_path: Path) -> None:
    """Each planted act is reported on its line; those that take a decision, and looks, are not."""
    planted = tmp_path / "planted.py"
    planted.write_text(UNGUARDED, encoding="utf-8")
    reported = [line.split(" without")[0] for line in unguarded(planted.read_text("utf-8"))]
    assert reported == [
        "line 3: creates a fix task",
        "line 5: starts a review run",
        "line 7: begins a turn",
        "line 9: gives a task rounds",
        "line 10: counts a resume",
        "line 14: asks the fixer's model",
        "line 16: starts a verify run",
    ]
    assert unguarded(GUARDED) == []


def sealed(hint: Any) -> bool:
    """Whether a value of this type comes from the guards, directly or in a permit."""
    arguments = typing.get_args(hint)
    if arguments:
        return any(sealed(argument) for argument in arguments)
    if not isinstance(hint, type):
        return False
    if hint.__module__ == permits.__name__:
        return any(sealed(each) for each in typing.get_type_hints(hint).values())
    return issubclass(hint, Decision | TaskPlan)


def speaks(effect: type[Any]) -> bool:
    """Whether an effect has a word that may approve."""
    words = {ReviewEvent, CheckConclusion, Verdict}
    hints = typing.get_type_hints(effect).values()
    return any(words & {hint, *typing.get_args(hint)} for hint in hints)


def silent(effects: tuple[type[Any], ...]) -> list[str]:
    """Effects that may approve and hold nothing that the guards said."""
    return [
        effect.__name__
        for effect in effects
        if speaks(effect)
        and not any(sealed(hint) for hint in typing.get_type_hints(effect).values())
    ]


@dataclass(frozen=True)
class ApproveAnyway:
    """An effect that nobody was asked about."""

    event: ReviewEvent
    head_sha: str


def test_every_effect_with_a_verdict_holds_a_decision() -> None:
    """A new effect with which something could be approved needs the guards' word, too."""
    effects = typing.get_args(Effect)
    assert {each.__name__ for each in effects if speaks(each)} == {"PublishReview", "SetCheckRun"}
    assert silent(effects) == []
    assert silent((*effects, ApproveAnyway)) == ["ApproveAnyway"]


def test_a_permit_holds_what_the_guards_said() -> None:
    """A permission without a decision would be one that anybody can make."""
    made = [each for each in vars(permits).values() if isinstance(each, type)]
    own = [each for each in made if each.__module__ == permits.__name__]
    assert own
    assert [each.__name__ for each in own if not sealed(each)] == []
    assert sealed(NextDecision)
