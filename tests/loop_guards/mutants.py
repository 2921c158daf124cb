"""One small mistake at a time in the source of a module. `model/mutation.py` tries them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

Members = Mapping[str, list[str]]
"""Names of the members of each enum class."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one mistake. `label` says where and which, the same in every run."""

    module: str
    label: str
    code: CodeType


@dataclass(slots=True)
class _Place:
    """Where a node hangs in the tree: `getattr(owner, name)`, or the item `index` of that."""

    owner: Any
    name: str
    index: int | None
    above: _Place | None
    scope: str

    def get(self) -> Any:
        value = getattr(self.owner, self.name)
        return value if self.index is None else value[self.index]

    def put(self, node: Any) -> None:
        if self.index is None:
            setattr(self.owner, self.name, node)
        else:
            getattr(self.owner, self.name)[self.index] = node


def enum_members(sources: Iterable[str]) -> dict[str, list[str]]:
    """The enum classes of some modules."""
    classes = [
        node
        for source in sources
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and _is_enum(node)
    ]
    return {
        each.name: [
            item.targets[0].id
            for item in each.body
            if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name)
        ]
        for each in classes
    }


def mutants_of(module: str, source: str, members: Members) -> list[Mutant]:
    """Every mutant of a module. Mistakes that give the same program are one mutant."""
    tree = ast.parse(source)
    seen = {ast.dump(tree)}
    labels: Counter[str] = Counter()
    found: list[Mutant] = []
    for place in list(_places(tree, "", None)):
        node = place.get()
        for changed, said in _mistakes(node, members):
            if _means_nothing(place, changed):
                continue
            before = _context(place)
            place.put(ast.fix_missing_locations(ast.copy_location(changed, node)))
            after, dump = _context(place), ast.dump(tree)
            if dump not in seen:
                seen.add(dump)
                label = f"{module}{place.scope}: {said or f'{before} -> {after}'}"
                labels[label] += 1
                again = f" ({labels[label]})" if labels[label] > 1 else ""
                found.append(Mutant(module, label + again, compile(tree, module, "exec")))
            place.put(node)
    return found


def _is_enum(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "StrEnum" for base in node.bases)


# --- where a mistake can be made --------------------------------------------------------------


def _places(owner: ast.AST, scope: str, above: _Place | None) -> Iterator[_Place]:
    for name, value in ast.iter_fields(owner):
        if _is_left_alone(owner, name):
            continue
        items = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, node in items:
            if not isinstance(node, ast.AST) or _says_nothing(node, owner, index):
                continue
            place = _Place(owner, name, index, above, scope)
            yield place
            inside = scope
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                inside = f"{scope}.{node.name}"
            yield from _places(node, inside, place)


def _is_left_alone(owner: ast.AST, name: str) -> bool:
    """Annotations and bases do nothing here; the words of an enum are held by one test."""
    return (
        name in ("annotation", "returns", "bases", "ctx", "op", "ops")
        or (isinstance(owner, ast.ClassDef) and name == "body" and _is_enum_words(owner))
        or (
            isinstance(owner, ast.Call)
            and name == "func"
            and not isinstance(owner.func, ast.Attribute)
        )
    )


def _is_enum_words(node: ast.ClassDef) -> bool:
    return _is_enum(node) and not any(isinstance(item, ast.FunctionDef) for item in node.body)


def _says_nothing(node: ast.AST, owner: ast.AST, index: int | None) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Assign(value=ast.Subscript(slice=ast.Slice())):
            return False
        case ast.Assign(value=ast.Subscript() | ast.BinOp(op=ast.BitOr())):
            return isinstance(owner, ast.Module)
        case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar"))):
            return True
        case ast.Assign(value=ast.Constant(value=str())):
            return isinstance(owner, ast.ClassDef) and _is_enum(owner)
        case ast.keyword(arg="slots" | "kw_only" | "frozen"):
            return True
        case ast.Name(id="property" | "cache"):
            return isinstance(owner, ast.FunctionDef)
        case _:
            return False


_LONG = 70


def _context(place: _Place) -> str:
    """The mistake with as much around it as fits a line."""
    text = _text(place.get())
    above = place.above
    while above is not None and not isinstance(above.get(), ast.FunctionDef | ast.ClassDef):
        wider = _text(above.get())
        if len(wider) > _LONG:
            break
        text, above = wider, above.above
    return text if len(text) <= _LONG else f"{text[: _LONG - 2]} …"


def _text(node: ast.AST) -> str:
    text = (
        ast.unparse(node) if not isinstance(node, ast.comprehension) else ast.unparse(node).strip()
    )
    return " ".join(text.split()).replace("`", "'")


# --- the mistakes ---------------------------------------------------------------------------------

_COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}


def _means_nothing(place: _Place, changed: ast.AST) -> bool:
    """`x in (a, b)`: the order of what is looked in."""
    looked_in = place.name == "comparators" and isinstance(place.owner.ops[0], ast.In | ast.NotIn)
    items = getattr(place.get(), "elts", None)
    return looked_in and items is not None and len(items) == len(getattr(changed, "elts", ()))


Mistake = tuple[ast.AST, str]
"""A node in place of another, and words for it where the two alone would not say enough."""


def _mistakes(node: ast.AST, members: Members) -> Iterator[Mistake]:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        for member in _another_member(node, members.get(node.value.id, [])):
            yield member, ""
    rows: Callable[..., Iterator[Mistake]] | None = _ROWS.get(type(node))
    if rows is not None:
        yield from rows(node)
    make: Callable[..., Iterator[ast.AST]] | None = _MAKERS.get(type(node))
    if make is not None:
        for changed in make(node):
            yield changed, ""


def _another_member(node: ast.Attribute, names: list[str]) -> Iterator[ast.AST]:
    if node.attr in names and len(names) > 1:
        following = names[(names.index(node.attr) + 1) % len(names)]
        yield ast.Attribute(value=node.value, attr=following, ctx=node.ctx)


def _compare(node: ast.Compare) -> Iterator[ast.AST]:
    for operator in _COMPARED.get(type(node.ops[0]), ()):
        yield ast.Compare(left=node.left, ops=[operator()], comparators=node.comparators)


def _bool_op(node: ast.BoolOp) -> Iterator[ast.AST]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield ast.BoolOp(op=other, values=node.values)
    for index in range(len(node.values)):
        rest = node.values[:index] + node.values[index + 1 :]
        yield rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)


def _unary_op(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


def _bin_op(node: ast.BinOp) -> Iterator[ast.AST]:
    other = _CALCULATED.get(type(node.op))
    if other is not None:
        yield ast.BinOp(left=node.left, op=other(), right=node.right)


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    match node.value:
        case bool():
            yield ast.Constant(not node.value)
        case int():
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
        case str():
            yield ast.Constant("mutant")


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(op=ast.Not(), operand=test)


def _if(node: ast.If) -> Iterator[ast.AST]:
    match node.test:
        case ast.UnaryOp(op=ast.Not()):
            return
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() | ast.In()]):
            return
    yield ast.If(test=_negated(node.test), body=node.body, orelse=node.orelse)


def _if_exp(node: ast.IfExp) -> Iterator[ast.AST]:
    yield ast.IfExp(test=node.test, body=node.orelse, orelse=node.body)


def _comprehension(node: ast.comprehension) -> Iterator[ast.AST]:
    for index in range(len(node.ifs)):
        ifs = node.ifs[:index] + node.ifs[index + 1 :]
        yield ast.comprehension(target=node.target, iter=node.iter, ifs=ifs, is_async=0)


def _return(node: ast.Return) -> Iterator[ast.AST]:
    if node.value is not None and not isinstance(node.value, ast.Constant):
        yield ast.Return(value=ast.Constant(None))


def _sequence(node: ast.Tuple | ast.List | ast.Set) -> Iterator[Mistake]:
    """A row less, and two neighbours in the other order."""
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    items = node.elts
    for index, item in enumerate(items):
        rest = items[:index] + items[index + 1 :]
        yield _of_items(node, rest), _said(node, f"without {_text(item)}")
    if isinstance(node, ast.Set):
        return
    for index in range(len(items) - 1):
        first, second = items[index : index + 2]
        swapped = [*items[:index], second, first, *items[index + 2 :]]
        said = _said(node, f"{_text(second)} before {_text(first)}")
        yield _of_items(node, swapped), said


def _of_items(node: ast.Tuple | ast.List | ast.Set, items: list[ast.expr]) -> ast.expr:
    match node:
        case ast.Set():
            return ast.Set(elts=items)
        case ast.List():
            return ast.List(elts=items, ctx=ast.Load())
        case ast.Tuple():
            return ast.Tuple(elts=items, ctx=ast.Load())


def _said(node: ast.expr, words: str) -> str:
    """Words for a change in what is too long to be shown."""
    return words if len(_text(node)) > _LONG else ""


def _dict(node: ast.Dict) -> Iterator[Mistake]:
    for index, key in enumerate(node.keys):
        keys, values = node.keys[:], node.values[:]
        del keys[index], values[index]
        said = f"without {_text(key)}" if key is not None else "without what is spread"
        yield ast.Dict(keys=keys, values=values), _said(node, said)


def _call_arguments(node: ast.Call) -> Iterator[Mistake]:
    for index, each in enumerate(node.keywords):
        if each.arg not in ("slots", "kw_only"):
            rest = node.keywords[:index] + node.keywords[index + 1 :]
            call = ast.Call(func=node.func, args=node.args, keywords=rest)
            said = f"{_text(node.func)}(…) without {each.arg or _text(each.value)}"
            yield call, _said(node, said)


def _call(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Name) and node.func.id in _CALLED:
        other = ast.Name(id=_CALLED[node.func.id], ctx=ast.Load())
        kept = [] if other.id == "list" else node.keywords
        yield ast.Call(func=other, args=node.args, keywords=kept)


def _slice(node: ast.Slice) -> Iterator[ast.AST]:
    if node.lower is not None:
        yield ast.Slice(lower=None, upper=node.upper, step=node.step)
    if node.upper is not None:
        yield ast.Slice(lower=node.lower, upper=None, step=node.step)


def _match(node: ast.Match) -> Iterator[ast.AST]:
    for index in range(len(node.cases)):
        cases = node.cases[:index] + node.cases[index + 1 :]
        yield ast.Match(subject=node.subject, cases=cases) if cases else ast.Pass()


def _match_or(node: ast.MatchOr) -> Iterator[ast.AST]:
    for index in range(len(node.patterns)):
        patterns = node.patterns[:index] + node.patterns[index + 1 :]
        yield patterns[0] if len(patterns) == 1 else ast.MatchOr(patterns=patterns)


def _gone(node: ast.stmt) -> Iterator[ast.AST]:
    yield ast.Pass()


def _continue(node: ast.Continue) -> Iterator[ast.AST]:
    yield ast.Break()


_MAKERS: dict[type[ast.AST], Callable[..., Iterator[ast.AST]]] = {
    ast.Compare: _compare,
    ast.BoolOp: _bool_op,
    ast.UnaryOp: _unary_op,
    ast.BinOp: _bin_op,
    ast.Constant: _constant,
    ast.If: _if,
    ast.IfExp: _if_exp,
    ast.comprehension: _comprehension,
    ast.Return: _return,
    ast.Call: _call,
    ast.Slice: _slice,
    ast.Match: _match,
    ast.MatchOr: _match_or,
    ast.Expr: _gone,
    ast.AugAssign: _gone,
    ast.Raise: _gone,
    ast.Continue: _continue,
}
_ROWS: dict[type[ast.AST], Callable[..., Iterator[Mistake]]] = {
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.Call: _call_arguments,
}
