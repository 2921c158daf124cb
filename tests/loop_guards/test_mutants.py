"""The mistakes that `make mutants` makes are those it says."""

from __future__ import annotations

import pytest

from tests.loop_guards.mutants import enum_members, mutants_of

COLOURS = """
class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"
"""
MISTAKES: list[tuple[str, list[str]]] = [
    ("a < b", ["a <= b", "a >= b"]),
    ("a is b", ["a is not b"]),
    ("a in b", ["a not in b"]),
    ("a in (b, c)", ["a not in (b, c)", "a in (c,)", "a in (b,)"]),
    ("a and b", ["a or b", "b", "a"]),
    ("not a", ["a"]),
    ("a + b", ["a - b"]),
    ("a // b", ["a * b"]),
    ("3", ["4", "2"]),
    ("True", ["False"]),
    ("'text'", ["'mutant'"]),
    ("-a", ["a"]),
    ("a[b:c]", ["a[:c]", "a[b:]"]),
    ("min(a)", ["max(a)"]),
    ("sorted(a, key=b)", ["sorted(a)", "list(a)"]),
    ("f(a=b, c=d)", ["f(c=d)", "f(a=b)"]),
    ("(a, b)", ["(b,)", "(a,)", "(b, a)"]),
    ("{a, b}", ["{b}", "{a}"]),
    ("{a: b, c: d}", ["{c: d}", "{a: b}"]),
    ("a if b else c", ["c if b else a"]),
    ("[a for a in b if c]", ["[a for a in b]"]),
    ("Colour.RED", ["Colour.BLUE"]),
    ("Colour.BLUE", ["Colour.RED"]),
    ("colour.RED", []),
]


@pytest.mark.parametrize(("expression", "mistakes"), MISTAKES, ids=[each for each, _ in MISTAKES])
def test_the_mistakes_of_an_expression(expression: str, mistakes: list[str]) -> None:
    """Comparisons, conditions, constants, calculations, rows and their order, members of enums."""
    made = mutants_of("m", f"x = {expression}", enum_members([COLOURS]))
    assert [each.label for each in made] == [
        f"m: x = {expression} -> x = {each}" for each in mistakes
    ]


STATEMENTS: list[tuple[str, list[str]]] = [
    ("def f():\n    return a", ["m.f: return a -> return None"]),
    ("if a:\n    b", ["m: if a: b -> if not a: b", "m: if a: b -> if a: pass"]),
    ("if a is b:\n    b()", ["a is not b", "pass"]),
    ("a += b", ["m: a += b -> pass"]),
    ("def f(a: int = 0): ...", ["a: int=1", "a: int=-1"]),
]


@pytest.mark.parametrize(("source", "mistakes"), STATEMENTS, ids=[each for each, _ in STATEMENTS])
def test_the_mistakes_of_a_statement(source: str, mistakes: list[str]) -> None:
    """Returns, branches, effects and defaults."""
    made = [each.label for each in mutants_of("m", source, {})]
    assert len(made) == len(mistakes)
    assert all(words in label for words, label in zip(mistakes, made, strict=True))


LEFT_ALONE = [
    '"""What a module promises."""',
    "from a import b",
    "__all__ = ['a']",
    "a: dict[str, 'b']",
    "Kind = dict[str, int] | None",
    "T = TypeVar('T', bound=int)",
    "@dataclass(slots=True, kw_only=True)\nclass A:\n    b: int",
    COLOURS,
]


@pytest.mark.parametrize("source", LEFT_ALONE)
def test_what_changes_nothing_is_left_alone(source: str) -> None:
    """No mutant of words, types and imports: none of them could be noticed, or all by one test."""
    assert mutants_of("m", source, {}) == []


def test_a_mutant_is_the_module_with_one_mistake() -> None:
    """What is run is what the label says, and the others do not hold it."""
    first, second = mutants_of("m", "x = [1 < 1]", {})[:2]
    found: list[list[object]] = []
    for each in (first, second):
        names: dict[str, object] = {}
        exec(each.code, names)  # noqa: S102 - our own three words
        found.append([names["x"]])
    assert found == [[[]], [[True]]]
