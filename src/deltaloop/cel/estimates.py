"""Estimate the cost of an expression from the sizes of its variables, with macros expanded like in cel-go.

Source: cel-go checker/cost.go; parser/macro.go, ext/comprehensions.go, ext/lists.go and cel/library.go for the macros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Final, TypeAlias, final
from typing import Literal as OneOf

import msgspec

from deltaloop.cel.checker import Checked
from deltaloop.cel.costs import (
    ANY_SIZE,
    LIST_COST,
    MAP_COST,
    OBJECT_COST,
    ONE,
    STANDARD_COSTS,
    UNLIMITED,
    CallEstimate,
    CallShape,
    Cost,
    Estimate,
    Operand,
    SizeHints,
    paired,
)
from deltaloop.cel.library import Overload
from deltaloop.cel.syntax import (
    USED_TWICE,
    Comprehension,
    FunctionCall,
    ListLiteral,
    Literal,
    MapLiteral,
    Name,
    Node,
    ObjectLiteral,
    Select,
    dotted_name,
)
from deltaloop.cel.types import BOOL, DYN, INT, Type, list_of, optional_of
from deltaloop.cel.unification import optional_parameter

_Kind: TypeAlias = OneOf["literal", "name", "select", "test", "call", "list", "map", "object", "loop", "bind"]

_FREE: Final = Estimate(0, 0)
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_ACCUMULATOR: Final = "@result"


@final
class _Part(msgspec.Struct, eq=False):
    """Part of the expanded tree. The parts of a loop are range, start, condition, step and result."""

    kind: _Kind
    type: Type
    name: str = ""
    parts: tuple[_Part, ...] = ()
    overloads: tuple[Overload | str, ...] = ()
    has_target: bool = False
    value: object = None
    variables: tuple[str, ...] = ()


@final
class _Entries(msgspec.Struct, frozen=True):
    of: str
    key: Estimate
    value: Estimate

    def joined(self, other: _Entries) -> _Entries:
        return _Entries(self.of, self.key.joined(other.key), self.value.joined(other.value))


@final
class _Local(msgspec.Struct, frozen=True):
    path: tuple[str, ...]
    size: Estimate | None
    entries: _Entries | None = None


def estimate(checked: Checked, hints: SizeHints, function_costs: Mapping[str, Cost]) -> Estimate:
    return _Estimator(hints, function_costs).cost(_Expander(checked).part(checked.tree))


# Expansion of macros.


def _call(function: str, result: Type, overload: str, *parts: _Part, has_target: bool = False) -> _Part:
    return _Part("call", result, function, parts, (overload,), has_target)


def _constant(value: object, kind: Type) -> _Part:
    return _Part("literal", kind, value=value)


def _accumulator(kind: Type) -> _Part:
    return _Part("name", kind, _ACCUMULATOR)


class _Expander:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked

    def part(self, node: Node) -> _Part:
        kind = self._checked.types[id(node)]
        reference = self._checked.references.get(id(node))
        if reference is not None:
            return _Part("name", kind, reference.name)
        match node:
            case Literal():
                return _Part("literal", kind, value=node.value)
            case Name():
                return _Part("name", kind, node.name)
            case Select():
                operand = self.part(node.operand)
                if node.optional:
                    name = _constant(node.field, Type("string", "string"))
                    return _call("_?._", kind, "select_optional_field", operand, name)
                return _Part("test" if node.test_only else "select", kind, node.field, (operand,))
            case FunctionCall():
                return self._function(node, kind)
            case ListLiteral():
                return _Part("list", kind, parts=tuple(map(self.part, node.items)))
            case MapLiteral() | ObjectLiteral():
                entries = (each for entry in node.entries for each in (entry.key, entry.value))
                if isinstance(node, ObjectLiteral):
                    return _Part("object", kind, parts=tuple(self.part(entry.value) for entry in node.entries))
                return _Part("map", kind, parts=tuple(map(self.part, entries)))
            case Comprehension():
                return self._macro(node, kind)

    def _function(self, node: FunctionCall, kind: Type) -> _Part:
        parts = tuple(map(self.part, node.arguments))
        overloads = self._checked.overloads[id(node)]
        if node.function in ("_&&_", "_||_"):
            return _logical(node.function, parts)
        if node.target is None:
            return _Part("call", kind, node.function, parts, overloads)
        if id(node) in self._checked.qualified:
            return _Part("call", kind, f"{dotted_name(node.target)}.{node.function}", parts, overloads)
        return _Part("call", kind, node.function, (self.part(node.target), *parts), overloads, has_target=True)

    def _macro(self, node: Comprehension, kind: Type) -> _Part:
        bodies = tuple(map(self.part, node.bodies))
        if node.macro == "bind":
            return _bind(node.variables[0], self.part(node.operand), bodies[0])
        if node.macro in USED_TWICE:
            return self._optional(node, kind, bodies[0])
        if node.macro == "sortBy":
            return self._sorted(node, kind, bodies[0])
        start, condition, step, result = _MACROS[node.macro](node, bodies)
        parts = (self.part(node.operand), start, condition, step, result)
        return _Part("loop", kind, parts=parts, variables=node.variables)

    def _optional(self, node: Comprehension, kind: Type, body: _Part) -> _Part:
        target, again = self.part(node.operand), self.part(node.operand)
        inside = optional_parameter(target.type) or DYN
        value = _call("value", inside, "optional_value", again, has_target=True)
        found = _bind(node.variables[0], value, body)
        if node.macro == "optMap":
            found = _call("optional.of", optional_of(body.type), "optional_of", found)
        asked = _call("hasValue", BOOL, "optional_hasValue", target, has_target=True)
        return _call("_?_:_", kind, "conditional", asked, found, _call("optional.none", kind, "optional_none"))

    def _sorted(self, node: Comprehension, kind: Type, body: _Part) -> _Part:
        name = "@__sortBy_input__"
        target = self.part(node.operand)
        keys = list_of(body.type)
        start, condition, step, result = _mapped(node, (body,))
        mapped = _Part(
            "loop",
            keys,
            parts=(_Part("name", target.type, name), start, condition, step, result),
            variables=node.variables,
        )
        comparable = body.type.kind if body.type.kind not in ("dyn", "param", "error") else ""
        overloads = (f"list_{comparable}_sortByAssociatedKeys",) if comparable else _SORTED
        call = _Part("call", kind, "@sortByAssociatedKeys", (_Part("name", target.type, name), mapped), overloads, True)
        return _bind(name, target, call)


_SORT_COSTS: Final = {
    f"list_{kind}_sortByAssociatedKeys": paired(1, is_text=kind in ("string", "bytes"))
    for kind in ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
}
_SORTED: Final = tuple(_SORT_COSTS)


_LOGICAL: Final = (("logical_and",), ("logical_or",))


def _logical(function: str, parts: tuple[_Part, ...]) -> _Part:
    """Return a chain of ``&&`` or ``||``. Balancing it like cel-go would not change the cost."""
    overload = "logical_and" if function == "_&&_" else "logical_or"
    return reduce(lambda left, right: _call(function, BOOL, overload, left, right), parts)


def _bind(name: str, value: _Part, body: _Part) -> _Part:
    return _Part("bind", body.type, parts=(value, body), variables=(name,))


_Fold: TypeAlias = tuple[_Part, _Part, _Part, _Part]


def _all(node: Comprehension, bodies: tuple[_Part, ...]) -> _Fold:  # noqa: ARG001
    condition = _call("@not_strictly_false", BOOL, "not_strictly_false", _accumulator(BOOL))
    step = _call("_&&_", BOOL, "logical_and", _accumulator(BOOL), bodies[0])
    return _constant(True, BOOL), condition, step, _accumulator(BOOL)


def _exists(node: Comprehension, bodies: tuple[_Part, ...]) -> _Fold:  # noqa: ARG001
    none_yet = _call("!_", BOOL, "logical_not", _accumulator(BOOL))
    condition = _call("@not_strictly_false", BOOL, "not_strictly_false", none_yet)
    step = _call("_||_", BOOL, "logical_or", _accumulator(BOOL), bodies[0])
    return _constant(False, BOOL), condition, step, _accumulator(BOOL)


def _exactly_one(node: Comprehension, bodies: tuple[_Part, ...]) -> _Fold:  # noqa: ARG001
    counted = _call("_+_", INT, "add_int64", _accumulator(INT), _constant(1, INT))
    step = _call("_?_:_", INT, "conditional", bodies[0], counted, _accumulator(INT))
    result = _call("_==_", BOOL, "equals", _accumulator(INT), _constant(1, INT))
    return _constant(0, INT), _constant(True, BOOL), step, result


def _gathered(kind: Type, step: _Part, conditions: Sequence[_Part], start: _Part) -> _Fold:
    if conditions:
        step = _call("_?_:_", kind, "conditional", conditions[0], step, _accumulator(kind))
    return start, _constant(True, BOOL), step, _accumulator(kind)


def _mapped(node: Comprehension, bodies: tuple[_Part, ...]) -> _Fold:  # noqa: ARG001
    kind = list_of(bodies[-1].type)
    step = _call("_+_", kind, "add_list", _accumulator(kind), _Part("list", kind, parts=(bodies[-1],)))
    return _gathered(kind, step, bodies[:-1], _Part("list", kind))


def _filtered(node: Comprehension, bodies: tuple[_Part, ...]) -> _Fold:
    kind = list_of(DYN)
    item = _Part("list", kind, parts=(_Part("name", DYN, node.variables[0]),))
    return _gathered(kind, _call("_+_", kind, "add_list", _accumulator(kind), item), bodies, _Part("list", kind))


def _map_of_pairs(node: Comprehension, bodies: tuple[_Part, ...]) -> _Fold:
    kind = Type("map", "map", (DYN, bodies[-1].type))
    pair = () if node.macro == "transformMapEntry" else (_Part("name", DYN, node.variables[0]),)
    step = _call("cel.@mapInsert", kind, "@mapInsert", _accumulator(kind), *pair, bodies[-1])
    return _gathered(kind, step, bodies[:-1], _Part("map", kind))


_MACROS: Final[Mapping[str, Callable[[Comprehension, tuple[_Part, ...]], _Fold]]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exactly_one,
    "existsOne": _exactly_one,
    "map": _mapped,
    "filter": _filtered,
    "transformList": _mapped,
    "transformMap": _map_of_pairs,
    "transformMapEntry": _map_of_pairs,
}


class _Estimator:
    def __init__(self, hints: SizeHints, function_costs: Mapping[str, Cost]) -> None:
        self._hints = hints
        self._function_costs = function_costs
        self._paths: dict[_Part, tuple[str, ...]] = {}
        self._sizes: dict[_Part, Estimate] = {}
        self._entries: dict[_Part, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, part: _Part) -> Estimate:
        match part.kind:
            case "literal":
                return _FREE
            case "name":
                local = self._local(part)
                self._paths[part] = (part.name,) if local is None else local.path
                return ONE
            case "select":
                operand = part.parts[0]
                cost = self.cost(operand)
                self._paths[part] = (*self._path(operand), part.name)
                return cost.plus(ONE) if operand.type.kind in ("map", "object", "param") else cost
            case "test":
                return self.cost(part.parts[0])
            case "call":
                return self._call(part)
            case "list" | "map" | "object":
                return self._built(part)
            case "loop":
                return self._loop(part)
            case "bind":
                return self._bound(part)

    def _sum(self, parts: Sequence[_Part]) -> Estimate:
        total = _FREE
        for part in parts:
            total = total.plus(self.cost(part))
        return total

    # Sizes.

    def _local(self, part: _Part) -> _Local | None:
        found = self._locals.get(part.name) if part.kind == "name" else None
        return found[-1] if found else None

    def _path(self, part: _Part) -> tuple[str, ...]:
        local = self._local(part)
        return local.path if local is not None else self._paths.get(part, ())

    def _size(self, part: _Part) -> Estimate | None:
        if part in self._sizes:
            return self._sizes[part]
        known = _literal_size(part)
        if known is not None:
            return Estimate(known, known)
        path = self._path(part)
        hinted = self._hints(path) if path else None
        if hinted is not None:
            self._sizes[part] = hinted
            return hinted
        if _is_scalar(part.type):
            return ONE
        local = self._local(part)
        return local.size if local is not None else None

    def _any_size(self, part: _Part) -> Estimate:
        return self._size(part) or ANY_SIZE

    def _entry_sizes(self, part: _Part) -> _Entries | None:
        if part in self._entries:
            return self._entries[part]
        local = self._local(part)
        return local.entries if local is not None else None

    def _keep(self, part: _Part, size: Estimate | None, entries: _Entries | None = None) -> None:
        if size is not None:
            self._sizes[part] = size
        if entries is not None:
            self._entries[part] = entries

    # Calls.

    def _operand(self, part: _Part) -> Operand:
        path = self._path(part)
        path = () if path and path[0] == _ACCUMULATOR else path
        return Operand(part.type, path, self._size(part), part.value if part.kind == "literal" else None)

    def _call(self, part: _Part) -> Estimate:
        if part.name == "dyn":
            cost = self.cost(part.parts[0]).plus(ONE)
            self._keep(part, self._size(part.parts[0]), self._entry_sizes(part.parts[0]))
            return cost
        if part.overloads in _LOGICAL:
            left, right = map(self.cost, part.parts)
            self._keep(part, ONE)
            return Estimate(left.least, left.plus(right).most)
        target = part.parts[0] if part.has_target else None
        arguments = part.parts[1:] if part.has_target else part.parts
        costs: list[Estimate] = []
        operands: list[Operand] = []
        for argument in arguments:
            costs.append(self.cost(argument))
            operands.append(self._operand(argument))
        total = self.cost(target) if target is not None else _FREE
        asked = self._operand(target) if target is not None else None
        own = Estimate(UNLIMITED, 0)
        size: Estimate | None = None
        for overload in part.overloads:
            name = overload if isinstance(overload, str) else overload.name
            shape = CallShape(part.name, name, asked, tuple(operands), self._hints)
            cost, result = self._overload(part, overload, shape, arguments, costs)
            own = own.joined(cost)
            if result is not None:
                size = result if size is None else size.joined(result)
            if name in ("index_list", "index_map"):
                entries = self._entry_sizes(arguments[0])
                size = entries.value if entries is not None else None
                self._paths[part] = (*self._path(arguments[0]), "@items" if name == "index_list" else "@values")
            if size is None:
                size = self._size(part)
        self._keep(part, size)
        return total.plus(own)

    def _overload(
        self, part: _Part, overload: Overload | str, call: CallShape, arguments: Sequence[_Part], costs: list[Estimate]
    ) -> CallEstimate:
        given = _FREE
        for cost in costs:
            given = given.plus(cost)
        said = next(self._estimates(overload, call), None)
        if said is not None:
            return said[0].plus(given), said[1]
        if call.overload == "conditional":
            entries = _joined_entries(self._entry_sizes(arguments[1]), self._entry_sizes(arguments[2]))
            size = self._any_size(arguments[1]).joined(self._any_size(arguments[2]))
            self._keep(part, None, entries)
            return costs[0].plus(costs[1].joined(costs[2])), size
        if call.overload in ("add_list", "add_string", "add_bytes"):
            self._keep(part, None, _joined_entries(*map(self._entry_sizes, arguments)))
        standard = STANDARD_COSTS.get(call.overload)
        found = standard.estimated(call) if standard is not None else None
        if found is None:
            return ONE.plus(given), None
        return found[0].plus(given), found[1]

    def _estimates(self, overload: Overload | str, call: CallShape) -> Iterator[CallEstimate]:
        """Yield the libraries' estimates of a call, the preferred first."""
        own = overload.cost if isinstance(overload, Overload) else _SORT_COSTS.get(overload)
        for cost in (own, self._function_costs.get(call.function)):
            found = cost.estimated(call) if cost is not None else None
            if found is not None:
                yield found

    # Literals and macros.

    def _built(self, part: _Part) -> Estimate:
        cost = self._sum(part.parts)
        if part.kind == "object":
            return cost.plus(Estimate(OBJECT_COST, OBJECT_COST))
        is_map = part.kind == "map"
        key = self._largest(part.parts[::2]) if is_map else ONE
        value = self._largest(part.parts[1::2] if is_map else part.parts)
        self._keep(part, None, _Entries(part.kind, key, value))
        own = MAP_COST if is_map else LIST_COST
        return cost.plus(Estimate(own, own))

    def _largest(self, parts: Sequence[_Part]) -> Estimate:
        found = Estimate(UNLIMITED if parts else 0, 0)
        for part in parts:
            found = found.joined(self._any_size(part))
        return found

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _loop(self, part: _Part) -> Estimate:
        over, start, condition, step, result = part.parts
        total = self.cost(over).plus(self.cost(start))
        self._push(_ACCUMULATOR, _Local(self._path(start), self._size(start), self._entry_sizes(start)))
        for name, local in zip(part.variables, self._variables(over, len(part.variables)), strict=True):
            self._push(name, local)
        each = self.cost(condition).plus(self.cost(step))
        for name in part.variables:
            self._locals[name].pop()
        total = total.plus(self.cost(result))
        self._locals[_ACCUMULATOR].pop()
        count = self._any_size(over)
        if start.kind == "literal":
            self._keep(part, self._size(start))
        else:
            self._keep(part, count, self._entry_sizes(step))
        return total.plus(count.times(each))

    def _variables(self, over: _Part, count: int) -> Sequence[_Local]:
        entries, path = self._entry_sizes(over), self._path(over)
        is_list = (entries.of if entries is not None else over.type.kind) == "list"
        key = _Local((*path, "@indices" if is_list else "@keys"), entries.key if entries is not None else None)
        value = _Local((*path, "@items" if is_list else "@values"), entries.value if entries is not None else None)
        if count == 2:
            return key, value
        return (value if is_list else key,)

    def _bound(self, part: _Part) -> Estimate:
        value, body = part.parts
        cost = self.cost(value).plus(Estimate(LIST_COST, LIST_COST))
        self._push(part.variables[0], _Local(self._path(value), self._size(value), self._entry_sizes(value)))
        cost = cost.plus(self.cost(body))
        self._locals[part.variables[0]].pop()
        self._keep(part, self._size(body), self._entry_sizes(body))
        return cost


def _joined_entries(one: _Entries | None, other: _Entries | None) -> _Entries | None:
    return one.joined(other) if one is not None and other is not None else None


def _literal_size(part: _Part) -> int | None:
    match part.kind:
        case "literal":
            return len(part.value) if isinstance(part.value, str | bytes) else 1
        case "list":
            return len(part.parts)
        case "map":
            return len(part.parts) // 2
        case _:
            return None


def _is_scalar(declared: Type) -> bool:
    inside = optional_parameter(declared)
    return _is_scalar(inside) if inside is not None else declared.kind in _SCALARS
