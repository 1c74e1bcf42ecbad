"""Where a program decides by the text of an error: the search of ``test_decisions``.

The text is followed through a module: from ``str(error)``, ``error.args``, ``error.message``, ``error.why`` and the
like, through names that it is given to, functions of the module that it is passed to and returned by, and what makes
other texts of it. A decision is a comparison, a search in it, a pattern that is held against it, or what takes it
apart. To ask whether there is a text at all is none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_CUTS = frozenset({"startswith", "endswith", "partition", "rpartition", "find", "rfind", "index", "rindex", "count"})
_CUTS_AT = frozenset({"split", "rsplit"})  # without arguments they only tidy up
_CUTS_OFF = frozenset({"removeprefix", "removesuffix"})
_PATTERNS = frozenset({"match", "search", "fullmatch", "findall", "finditer"})
_LOOKUPS = frozenset({"get", "pop", "setdefault"})
_KEPT = frozenset(
    {"replace", "strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title", "expandtabs", "format"}
)
_MADE = frozenset({"str", "repr", "redact", "one_line", "sub", "format_exception_only"})
_TEXTS = frozenset({"message", "why", "strerror", "args"})
_CALLED_SO = frozenset({"error", "exc", "failure", "cause"})
_ERRORS = re.compile(r"(Error|Exception|Failure)s?\b")

# To look closely at all of the source would take seconds: where errors get their names, and where one is written.
_NAMED = re.compile(r"\bas (\w+):|\b(\w+): [^=\n]*?(?:Error|Exception|Failure|object\b)")
_WRITTEN = r"(?:str|repr|redact)\((?:{0})\b|\{{(?:{0})[!}}:]|\b(?:{0})\.(?:\w+\.)*(?:message|why|strerror|args)\b"


@dataclass
class _Function:
    """A function of the module, or its top level.

    Attributes:
        node: Its tree.
        parameters: Their names, in order.
        errors: Names of errors in it.
        texts: Names of what their texts are.
        gives: Whether it returns such a text.
    """

    node: ast.AST
    parameters: list[str]
    errors: set[str] = field(default_factory=set[str])
    texts: set[str] = field(default_factory=set[str])
    gives: bool = False


def decisions_by_text(source: str) -> list[int]:
    """Return the lines in which a program decides by the text of an error."""
    names = {name for found in _NAMED.findall(source) for name in found if name} | _CALLED_SO | {"status"}
    if not re.search(_WRITTEN.format("|".join(sorted(names))), source):
        return []
    module = _Module(ast.parse(source))
    return sorted({line for function in module.functions for line in module.decisions(function)})


class _Module:
    """One module: its functions, and which of their names are texts of errors."""

    def __init__(self, tree: ast.Module) -> None:
        self.named: dict[str, list[_Function]] = {}
        self.functions = [_Function(tree, [])]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                made = _Function(node, [each.arg for each in arguments if each.arg not in ("self", "cls")])
                made.errors |= {
                    each.arg
                    for each in arguments
                    if each.annotation is not None and _ERRORS.search(ast.unparse(each.annotation))
                }
                self.functions.append(made)
                self.named.setdefault(node.name, []).append(made)
        self.owned = {id(function): list(_own(function.node)) for function in self.functions}
        for function in self.functions:
            function.errors |= {
                node.name for node in self.owned[id(function)] if isinstance(node, ast.ExceptHandler) and node.name
            }
        while self._follow():
            pass

    def decisions(self, function: _Function) -> Iterator[int]:
        """Give the lines of a function in which a text of an error decides."""
        for node in self.owned[id(function)]:
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                if any(self._is_text(side, function) for side in sides) and not any(map(_is_nothing, sides)):
                    yield node.lineno
            elif isinstance(node, ast.Match | ast.Subscript):
                if self._is_text(node.subject if isinstance(node, ast.Match) else node.slice, function):
                    yield node.lineno
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name, on = node.func.attr, node.func.value
                asked = name in _CUTS | _CUTS_OFF or (name in _CUTS_AT and bool(node.args))
                given = any(self._is_text(each, function) for each in node.args)
                if (asked and self._is_text(on, function)) or (given and name in _PATTERNS | _LOOKUPS):
                    yield node.lineno

    def _follow(self) -> bool:
        """Note what is a text by what is known so far, and tell whether that was anything new."""
        before = sum(len(function.texts) + len(function.errors) + function.gives for function in self.functions)
        for function in self.functions:
            for node in self.owned[id(function)]:
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        self._assign(target, node.value, function)
                elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                    self._assign(node.target, node.value, function)
                elif isinstance(node, ast.Return) and node.value is not None and self._is_text(node.value, function):
                    function.gives = True
                elif isinstance(node, ast.Call):
                    self._pass(node, function)
        after = sum(len(function.texts) + len(function.errors) + function.gives for function in self.functions)
        return after > before

    def _assign(self, target: ast.expr, value: ast.expr, function: _Function) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, other in zip(target.elts, value.elts, strict=True):
                self._assign(one, other, function)
        elif isinstance(target, ast.Name) and self._is_text(value, function):
            function.texts.add(target.id)

    def _pass(self, call: ast.Call, function: _Function) -> None:
        for called in self._called(call):
            given = [*zip(called.parameters, call.args, strict=False)]
            given += [(each.arg, each.value) for each in call.keywords if each.arg in called.parameters]
            for name, value in given:
                if self._is_text(value, function):
                    called.texts.add(name)
                elif isinstance(value, ast.Name) and value.id in function.errors:
                    called.errors.add(name)

    def _called(self, call: ast.Call) -> list[_Function]:
        if isinstance(call.func, ast.Name):
            return self.named.get(call.func.id, [])
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            return self.named.get(call.func.attr, []) if call.func.value.id in ("self", "cls") else []
        return []

    def _is_text(self, node: ast.expr, function: _Function) -> bool:
        """Tell whether an expression is the text of an error, or made of one."""
        match node:
            case ast.Name():
                return node.id in function.texts
            case ast.Attribute():
                return node.attr in _TEXTS and self._is_of_error(node.value, function)
            case ast.Subscript():
                return self._is_text(node.value, function)
            case ast.JoinedStr():
                return any(self._is_text(each, function) for each in node.values)
            case ast.FormattedValue():
                return self._is_error(node.value, function) or self._is_text(node.value, function)
            case ast.BinOp():
                return self._is_text(node.left, function) or self._is_text(node.right, function)
            case ast.IfExp():
                return self._is_text(node.body, function) or self._is_text(node.orelse, function)
            case ast.BoolOp():
                return any(self._is_text(each, function) for each in node.values)
            case ast.Call():
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if name in _MADE:
                    return any(self._is_error(each, function) or self._is_text(each, function) for each in node.args)
                if isinstance(node.func, ast.Attribute) and name in _KEPT | _CUTS_OFF:
                    return self._is_text(node.func.value, function)
                return any(called.gives for called in self._called(node))
            case _:
                return False

    def _is_error(self, node: ast.expr, function: _Function) -> bool:
        return isinstance(node, ast.Name) and (node.id in function.errors or node.id in _CALLED_SO)

    def _is_of_error(self, node: ast.expr, function: _Function) -> bool:
        """Tell whether an expression is an error, or what one holds, such as ``error.status.details``."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return self._is_error(node, function) or (isinstance(node, ast.Name) and node.id == "status")


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """Give what stands in a function, but not in those inside it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield node
        waiting += ast.iter_child_nodes(node)


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("", None)
