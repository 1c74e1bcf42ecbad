"""The mistakes: what each kind of node could have been instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lab.mutants.systematic.tree import changed, without

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
_OTHER_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LOGGERS = ("log", "_log", "logger", "_logger", "_LOG", "_LOGGER")
_NO_PART_OF_IT = ("TypeVar", "ParamSpec", "NewType", "cast", "TypedDict", "NamedTuple", "getLogger")
_DECLARATIONS = ("__all__", "__slots__", "__match_args__")


def mistakes(node: ast.AST, *, at_import: bool = False) -> Iterator[ast.AST]:
    """What could stand in a node's place: for a statement a statement, for an expression an expression."""
    if isinstance(node, ast.BoolOp):
        yield from _boolean(node)
    elif isinstance(node, ast.Compare):
        for index, op in enumerate(node.ops):
            other = _COMPARISONS[type(op)]()
            yield changed(node, ops=[*node.ops[:index], other, *node.ops[index + 1 :]])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        if not isinstance(node.operand, ast.Constant):
            yield node.operand
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _ARITHMETIC:
        yield changed(node, op=_ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.Constant):
        yield from _constant(node)
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, ast.IfExp):
        yield from _condition(node)
    elif isinstance(node, ast.comprehension):
        for index in range(len(node.ifs)):
            yield changed(node, ifs=without(node.ifs, index))
    elif isinstance(node, ast.Set | ast.List) and len(node.elts) > 1:
        for index in range(len(node.elts)):
            yield changed(node, elts=without(node.elts, index))
    elif isinstance(node, ast.Dict) and len(node.keys) > 1:
        for index in range(len(node.keys)):
            yield changed(node, keys=without(node.keys, index), values=without(node.values, index))
    elif isinstance(node, ast.ExceptHandler) and not _raises_on(node):
        yield changed(node, name=None, body=[ast.Raise(exc=None, cause=None)])
    if isinstance(node, ast.stmt) and not at_import:
        yield from _statement(node)


def is_of_no_interest(node: ast.AST) -> bool:
    """Whether nothing in it can be a mistake that a user sees: text for people, types, declarations."""
    if isinstance(node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or (is_logged(node) and _level(node) in ("debug", "info"))
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Name) and node.targets[0].id in _DECLARATIONS
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
    if isinstance(node, ast.Call):
        return _name(node.func) in _NO_PART_OF_IT
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return any(_name(each) in ("overload", "abstractmethod") for each in node.decorator_list)
    return False


def is_logged(node: ast.AST) -> bool:
    """Whether a statement writes to the log: only that it does matters, not the words."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and _name(node.value.func.value) in _LOGGERS
    )


def _raises_on(node: ast.ExceptHandler) -> bool:
    return len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and node.body[0].exc is None


def _level(node: ast.Expr) -> str:
    return _name(node.value.func) if isinstance(node.value, ast.Call) else ""


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _boolean(node: ast.BoolOp) -> Iterator[ast.AST]:
    for index in range(len(node.values)):
        left = without(node.values, index)
        yield left[0] if len(left) == 1 else changed(node, values=left)
    yield changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def _condition(node: ast.If | ast.While | ast.IfExp) -> Iterator[ast.AST]:
    """Negate what no other mistake of the condition itself negates."""
    test = node.test
    negated_there = isinstance(test, ast.BoolOp | ast.Constant | ast.UnaryOp) or (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
    )
    if not negated_there:
        yield changed(node, test=ast.UnaryOp(ast.Not(), test))


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
        if value == 1:
            yield ast.Constant(0)
    elif isinstance(value, float):
        yield ast.Constant(value * 2 if value else 1.0)
    elif isinstance(value, str) and value and " " not in value:
        yield ast.Constant(value + "X")
    elif isinstance(value, bytes) and value and b" " not in value:
        yield ast.Constant(value + b"X")


def _call(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Name) and node.func.id in _OTHER_CALLS:
        yield changed(node, func=ast.Name(_OTHER_CALLS[node.func.id], ast.Load()))
    for index in range(len(node.keywords)):
        yield changed(node, keywords=without(node.keywords, index))


def _statement(node: ast.stmt) -> Iterator[ast.stmt]:
    nothing = ast.Pass()
    if isinstance(node, ast.Expr):
        if not isinstance(node.value, ast.Yield | ast.YieldFrom):
            yield nothing
    elif isinstance(node, ast.AugAssign | ast.Raise):
        yield nothing
    elif isinstance(node, ast.Delete):
        if not isinstance(node.targets[0], ast.Name):
            yield nothing
    elif isinstance(node, ast.Assign):
        if not isinstance(node.targets[0], ast.Tuple):
            yield nothing
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None and isinstance(node.target, ast.Attribute):
            yield nothing
    elif isinstance(node, ast.Return):
        yield from _return(node)
    elif isinstance(node, ast.Break):
        yield ast.Continue()
    elif isinstance(node, ast.Continue):
        yield ast.Break()
        yield nothing
    elif isinstance(node, ast.If | ast.While):
        for other in _condition(node):
            assert isinstance(other, ast.stmt)
            yield other
    elif isinstance(node, ast.With | ast.AsyncWith):
        if not any(item.optional_vars for item in node.items):
            yield ast.If(ast.Constant(value=True), node.body, [])
    elif isinstance(node, ast.Try):
        if node.finalbody and node.handlers:
            yield changed(node, finalbody=[])
        elif node.finalbody:
            yield ast.If(ast.Constant(value=True), node.body, [])
    elif isinstance(node, ast.Match):
        for index, case in enumerate(node.cases):
            if len(node.cases) > 1:
                yield changed(node, cases=without(node.cases, index))
            if case.guard is not None:
                yield changed(node, cases=[*node.cases[:index], changed(case, guard=None), *node.cases[index + 1 :]])


def _return(node: ast.Return) -> Iterator[ast.stmt]:
    if node.value is None:
        yield ast.Pass()
    elif not isinstance(node.value, ast.Constant):
        yield ast.Return(ast.Constant(value=None))
