"""Find the type of every part of an expression, and resolve its names and calls.

Source: cel-spec doc/langdef.md, "Gradual Type Checking" and "Name Resolution"; cel-go checker/checker.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final

import msgspec

from deltaloop.cel.library import Overload
from deltaloop.cel.syntax import (
    USED_TWICE,
    Comprehension,
    FunctionCall,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Name,
    Node,
    ObjectLiteral,
    Select,
    dotted_name,
)
from deltaloop.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    NULL,
    Type,
    TypeProvider,
    list_of,
    map_of,
    optional_of,
    runtime_type,
    type_of,
)
from deltaloop.cel.unification import Substitution, differ, is_dyn, most_general, optional_parameter


@final
class Reference(msgspec.Struct, frozen=True):
    name: str
    meaning: Type | None = None


@final
class Checked(msgspec.Struct):
    """Results of the checker, keyed by the identities of nodes."""

    tree: Node
    types: dict[int, Type] = msgspec.field(default_factory=dict[int, Type])
    references: dict[int, Reference] = msgspec.field(default_factory=dict[int, Reference])
    overloads: dict[int, tuple[Overload, ...]] = msgspec.field(default_factory=dict[int, tuple[Overload, ...]])
    # Calls of functions with dotted names, whose target is not a value.
    qualified: set[int] = msgspec.field(default_factory=set[int])
    faults: list[tuple[int, str]] = msgspec.field(default_factory=list[tuple[int, str]])
    # Called functions as written, and whether the expression has literals of lists or maps.
    functions: set[str] = msgspec.field(default_factory=set[str])
    has_collections: bool = False


@final
class Declarations(msgspec.Struct, frozen=True):
    """Names that an expression can use; ``container`` is a prefix that is tried first, for example ``a.b``."""

    functions: Mapping[str, tuple[Overload, ...]]
    variables: Mapping[str, Type]
    types: Mapping[str, Type]
    provider: TypeProvider | None
    container: str


def check(tree: Node, declarations: Declarations) -> Checked:
    checker = _Checker(tree, declarations)
    checker.check(tree)
    checker.finish()
    return checker.found


class _Checker:
    def __init__(self, tree: Node, declarations: Declarations) -> None:
        self.found = Checked(tree)
        self._declarations = declarations
        self._substitution = Substitution()
        self._scopes: list[dict[str, Type]] = []

    def finish(self) -> None:
        for key, found in self.found.types.items():
            self.found.types[key] = self._substitution.applied(found, unbound=DYN)

    def check(self, node: Node) -> Type:
        found = self._found(node)
        self.found.types[id(node)] = found
        return found

    def _found(self, node: Node) -> Type:
        match node:
            case Literal():
                return runtime_type(node.value)
            case Name():
                return self._name(node)
            case Select():
                return self._select(node)
            case FunctionCall():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case ObjectLiteral():
                return self._object(node)
            case Comprehension():
                return self._comprehension(node)

    def _fault(self, offset: int, message: str) -> Type:
        self.found.faults.append((offset, message))
        return ERROR

    def _mismatch(self, offset: int, expected: Type, found: Type) -> Type:
        return self._fault(offset, f"expected type '{expected}' but found '{found}'")

    def _undeclared(self, offset: int, name: str) -> Type:
        return self._fault(offset, f"undeclared reference to '{name}' (in container '{self._declarations.container}')")

    def _applied(self, declared: Type) -> Type:
        return self._substitution.applied(declared)

    # Names.

    def _candidates(self, name: str) -> Iterator[str]:
        """Yield the possible full names of a name, the nearest first."""
        if name.startswith("."):
            yield name[1:]
            return
        container = self._declarations.container
        while container:
            yield f"{container}.{name}"
            container = container.rpartition(".")[0]
        yield name

    def _declared(self, name: str) -> tuple[Reference, Type] | None:
        for candidate in self._candidates(name):
            if candidate in self._declarations.variables:
                return Reference(candidate), self._declarations.variables[candidate]
            named = self._named_type(candidate)
            if named is not None:
                return Reference(candidate, named), type_of(named)
        return None

    def _named_type(self, name: str) -> Type | None:
        if name in self._declarations.types:
            return self._declarations.types[name]
        provider = self._declarations.provider
        return provider.named_type(name) if provider is not None else None

    def _local(self, name: str) -> Type | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _name(self, node: Name) -> Type:
        local = self._local(node.name)
        if local is not None:
            return local
        declared = self._declared(node.name)
        if declared is None:
            return self._undeclared(node.offset, node.name)
        self.found.references[id(node)] = declared[0]
        return declared[1]

    def _select(self, node: Select) -> Type:
        name = dotted_name(node)
        if name and self._local(name.split(".")[0]) is None:
            declared = self._declared(name)
            if declared is not None:
                self.found.references[id(node)] = declared[0]
                return declared[1]
        target = self._applied(self.check(node.operand))
        inside = optional_parameter(target)
        found = self._field(node, target if inside is None else inside)
        if node.test_only:
            return BOOL
        return optional_of(found) if node.optional or inside is not None else found

    def _field(self, node: Select, target: Type) -> Type:
        if target.kind == "map":
            return self._applied(target.parameters[1])
        if target.kind == "object":
            return self._object_field(node.offset, target, node.field)
        if target.kind == "param":
            self._substitution.assignable([DYN], [target])
        elif target.kind not in {"dyn", "error"}:
            self._fault(node.offset, f"type '{target}' does not support field selection")
        return DYN

    def _object_field(self, offset: int, target: Type, name: str) -> Type:
        provider = self._declarations.provider
        found = provider.field_type(target.name, name) if provider is not None else None
        return found if found is not None else self._fault(offset, f"undefined field '{name}'")

    # Calls.

    def _call(self, node: FunctionCall) -> Type:
        arguments = [self.check(argument) for argument in node.arguments]
        self.found.functions.add(node.function)
        if node.target is None:
            return self._resolved(node, node.function, arguments)
        prefix = dotted_name(node.target)
        if prefix and self._overloads(f"{prefix}.{node.function}") is not None:
            self.found.qualified.add(id(node))
            return self._resolved(node, f"{prefix}.{node.function}", arguments)
        return self._resolved(node, node.function, [self.check(node.target), *arguments], is_method=True)

    def _overloads(self, name: str) -> tuple[Overload, ...] | None:
        functions = self._declarations.functions
        if name in functions and not self._declarations.container:
            return functions[name]
        return next((functions[found] for found in self._candidates(name) if found in functions), None)

    def _resolved(self, node: FunctionCall, name: str, arguments: list[Type], *, is_method: bool = False) -> Type:
        overloads = self._overloads(name)
        if overloads is None:
            return self._undeclared(node.offset, name)
        if name in {"_&&_", "_||_"}:
            return self._logical(node, overloads, arguments)
        matching: list[Overload] = []
        result: Type | None = None
        for overload in overloads:
            if overload.is_method != is_method or len(overload.parameters) != len(arguments):
                continue
            if any(map(differ, arguments, overload.parameters)):
                continue
            given, parameters = self._substitution.instance(overload.result, overload.parameters)
            if not self._substitution.assignable(arguments, parameters):
                continue
            matching.append(overload)
            found = self._applied(given)
            if result is None:
                result = found
            elif not is_dyn(result) and found != result:
                result = DYN
        if result is None:
            shown = [str(self._substitution.applied(argument, unbound=DYN)) for argument in arguments]
            listed = f"{shown[0]}.({', '.join(shown[1:])})" if is_method else f"({', '.join(shown)})"
            function = name.removeprefix(".")
            return self._fault(node.offset, f"found no matching overload for '{function}' applied to '{listed}'")
        self.found.overloads[id(node)] = tuple(matching)
        return result

    def _logical(self, node: FunctionCall, overloads: tuple[Overload, ...], arguments: list[Type]) -> Type:
        wrong = False
        for argument, found in zip(node.arguments, arguments, strict=True):
            if not self._substitution.assignable([found], [BOOL]):
                self._mismatch(argument.offset, BOOL, found)
                wrong = True
        self.found.overloads[id(node)] = overloads
        return ERROR if wrong else BOOL

    # Literals.

    def _list(self, node: ListLiteral) -> Type:
        self.found.has_collections = True
        element: Type | None = None
        for index, item in enumerate(node.items):
            found = self.check(item)
            if index in node.optional:
                found = self._inside_optional(item, found)
            element = self._joined(element, found)
        return list_of(element if element is not None else self._substitution.fresh())

    def _map(self, node: MapLiteral) -> Type:
        self.found.has_collections = True
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._joined(key, self.check(entry.key))
            value = self._joined(value, self._entry_value(entry))
        if key is None or value is None:
            return map_of(self._substitution.fresh(), self._substitution.fresh())
        return map_of(key, value)

    def _object(self, node: ObjectLiteral) -> Type:
        named = next(
            (found for name in self._candidates(node.name) if (found := self._named_type(name)) is not None), None
        )
        if named is None:
            return self._undeclared(node.offset, node.name)
        if named.kind != "object":
            return self._fault(node.offset, f"'{named}' is not a message type")
        for entry in node.entries:
            assert isinstance(entry.key, Literal)
            name = str(entry.key.value)
            value = self._entry_value(entry)
            wanted = self._object_field(entry.offset, named, name)
            if not self._substitution.assignable([value], [wanted]):
                message = f"expected type of field '{name}' is '{wanted}' but provided type is '{value}'"
                self._fault(entry.offset, message)
        return named

    def _entry_value(self, entry: MapEntry) -> Type:
        found = self.check(entry.value)
        return self._inside_optional(entry.value, found) if entry.optional else found

    def _inside_optional(self, node: Node, found: Type) -> Type:
        inside = optional_parameter(found)
        if inside is not None:
            return inside
        if not is_dyn(found):
            self._mismatch(node.offset, optional_of(found), found)
        return found

    def _joined(self, before: Type | None, found: Type) -> Type:
        if before is None:
            return found
        if self._substitution.assignable([before], [found]):
            return most_general(before, found)
        return DYN

    # Macros with variables.

    def _comprehension(self, node: Comprehension) -> Type:
        before = len(self.found.faults)
        operand = self._applied(self.check(node.operand))
        if node.macro in USED_TWICE:
            self.found.faults.extend(self.found.faults[before:])
        variables = self._variables(node, operand)
        self._scopes.append(dict(zip(node.variables, variables, strict=True)))
        bodies = [self._applied(self.check(body)) for body in node.bodies]
        self._scopes.pop()
        return _TYPING[node.macro](self, node, (operand, *variables), bodies)

    def _variables(self, node: Comprehension, operand: Type) -> Sequence[Type]:
        if node.macro == "bind":
            return [operand]
        if node.macro in USED_TWICE:
            inside = optional_parameter(operand)
            if operand == NULL:  # null can be any optional value
                return [self._substitution.fresh()]
            if inside is None:
                if not is_dyn(operand) and operand != ERROR:
                    for function in ("hasValue", "value"):
                        shown = f"'{function}' applied to '{operand}.()'"
                        self._fault(node.offset, f"found no matching overload for {shown}")
                return [DYN]
            return [inside]
        two = len(node.variables) == 2
        if operand.kind == "list":
            return [INT, operand.parameters[0]] if two else [operand.parameters[0]]
        if operand.kind == "map":
            return operand.parameters if two else [operand.parameters[0]]
        if operand.kind == "param":
            self._substitution.assignable([DYN], [operand])
        elif operand.kind not in {"dyn", "error"}:
            allowed = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self._fault(node.operand.offset, f"expression of type '{operand}' {allowed}")
        return [DYN] * len(node.variables)

    def _quantifier(self, node: Comprehension, inside: tuple[Type, ...], bodies: list[Type]) -> Type:  # noqa: ARG002
        if not self._substitution.assignable([bodies[0]], [BOOL]):
            self._mismatch(node.bodies[0].offset, BOOL, bodies[0])
        return BOOL

    def _exactly_one(self, node: Comprehension, inside: tuple[Type, ...], bodies: list[Type]) -> Type:  # noqa: ARG002
        self._condition(node, bodies[0], INT)
        return BOOL

    def _transformed(self, node: Comprehension, inside: tuple[Type, ...], bodies: list[Type]) -> Type:  # noqa: ARG002
        result = list_of(bodies[-1])
        if len(bodies) == 2:
            self._condition(node, bodies[0], result)
        return result

    def _filtered(self, node: Comprehension, inside: tuple[Type, ...], bodies: list[Type]) -> Type:
        result = list_of(inside[1])
        self._condition(node, bodies[0], result)
        return result

    def _mapped(self, node: Comprehension, inside: tuple[Type, ...], bodies: list[Type]) -> Type:
        result = map_of(inside[1], bodies[-1])
        if len(bodies) == 2:
            self._condition(node, bodies[0], result)
        return result

    def _mapped_entries(self, node: Comprehension, inside: tuple[Type, ...], bodies: list[Type]) -> Type:  # noqa: ARG002
        result = map_of(self._substitution.fresh(), self._substitution.fresh())
        if not self._substitution.assignable([bodies[-1]], [result]):
            listed = f"({self._shown(result)}, {bodies[-1]})"
            return self._fault(node.offset, f"found no matching overload for 'cel.@mapInsert' applied to '{listed}'")
        if len(bodies) == 2:
            self._condition(node, bodies[0], result)
        return result

    def _bound(self, node: Comprehension, inside: tuple[Type, ...], bodies: list[Type]) -> Type:  # noqa: ARG002
        return bodies[0]

    def _optional(self, node: Comprehension, inside: tuple[Type, ...], bodies: list[Type]) -> Type:  # noqa: ARG002
        return optional_of(bodies[0])

    def _optional_flat(self, node: Comprehension, inside: tuple[Type, ...], bodies: list[Type]) -> Type:  # noqa: ARG002
        result = optional_of(self._substitution.fresh())
        if not self._substitution.assignable([bodies[0]], [result]):
            listed = f"(bool, {bodies[0]}, {self._shown(result)})"
            return self._fault(node.offset, f"found no matching overload for '_?_:_' applied to '{listed}'")
        return self._applied(result)

    def _sorted(self, node: Comprehension, inside: tuple[Type, ...], bodies: list[Type]) -> Type:
        if inside[0].kind == "map" or bodies[0].kind not in _COMPARABLE:
            listed = f"{inside[0]}.(list({self._shown(bodies[0])}))"
            message = f"found no matching overload for '@sortByAssociatedKeys' applied to '{listed}'"
            return self._fault(node.offset, message)
        return inside[0] if inside[0].kind == "list" else list_of(DYN)

    def _condition(self, node: Comprehension, found: Type, result: Type) -> None:
        """Require a bool. cel-go checks a ternary operator here, with the result so far on both sides."""
        if not self._substitution.assignable([found], [BOOL]):
            shown = self._shown(result)
            listed = f"({self._shown(found)}, {shown}, {shown})"
            self._fault(node.offset, f"found no matching overload for '_?_:_' applied to '{listed}'")

    def _shown(self, declared: Type) -> Type:
        return self._substitution.applied(declared, unbound=DYN)


_COMPARABLE: Final = frozenset(
    {"int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes", "dyn", "param", "error"}
)
# Result type of each macro.
_TYPING: Final = {
    "all": _Checker._quantifier,  # noqa: SLF001  # the class is this module's
    "exists": _Checker._quantifier,  # noqa: SLF001
    "exists_one": _Checker._exactly_one,  # noqa: SLF001
    "existsOne": _Checker._exactly_one,  # noqa: SLF001
    "map": _Checker._transformed,  # noqa: SLF001
    "filter": _Checker._filtered,  # noqa: SLF001
    "transformList": _Checker._transformed,  # noqa: SLF001
    "transformMap": _Checker._mapped,  # noqa: SLF001
    "transformMapEntry": _Checker._mapped_entries,  # noqa: SLF001
    "bind": _Checker._bound,  # noqa: SLF001
    "optMap": _Checker._optional,  # noqa: SLF001
    "optFlatMap": _Checker._optional_flat,  # noqa: SLF001
    "sortBy": _Checker._sorted,  # noqa: SLF001
}
