"""From a checked tree to closures over plain values.

A program is one function of a frame: a list with a slot for each variable. Each node becomes a closure that knows its
operands' closures and slots, so that nothing of the tree is looked at while the program runs. Whatever has no variable
is computed once, here; if that fails, the failure is the program's.

A closure looks at the types of the values before it calls an implementation: a variable may hold something else than
it was declared to. That is one look-up in a set, and ``no such overload`` is the same for declared and dynamic types.

With a budget, the same tree is compiled a second time, with closures that count.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from deltaloop.cel.checker import Checked
from deltaloop.cel.faults import CostLimitError, EvaluationError, FailedValue, no_such_overload
from deltaloop.cel.library import CallCost, Implementation, Overload
from deltaloop.cel.loops import LOOPS, Closure, Frame, put
from deltaloop.cel.operators import (
    ORDERED,
    SIMPLE,
    contains,
    equal,
    greater,
    greater_or_equal,
    has_field,
    index,
    less,
    less_or_equal,
    optional_index,
    select,
    unequal,
)
from deltaloop.cel.syntax import (
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
)
from deltaloop.cel.values import NO_VALUE, OptionalValue, Uint, kind_of

_Chooser: TypeAlias = Callable[[tuple[Any, ...]], tuple[Implementation, Overload]]

UNBOUND: Final = object()
# Slots at a frame's beginning: what has been spent, and how much may be.
SPENT: Final = 0
BUDGET: Final = 1
FIRST_SLOT: Final = 2

# Python's comparison, for two values of one of these types; and the language's, for all others.
_COMPARISONS: Final = {
    "_<_": (operator.lt, less, ORDERED),
    "_<=_": (operator.le, less_or_equal, ORDERED),
    "_>_": (operator.gt, greater, ORDERED),
    "_>=_": (operator.ge, greater_or_equal, ORDERED),
    "_==_": (operator.eq, equal, SIMPLE),
    "_!=_": (operator.ne, unequal, SIMPLE),
}
# Functions that cel-go calls before a program runs, if their argument is a literal.
_CONVERSIONS: Final = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint"})
_LIST_COST, _MAP_COST, _OBJECT_COST = 10, 30, 40
_MAP_KEYS: Final = frozenset({str, int, bool, Uint, float, type(None)})


class Compiler:
    """Makes closures of one checked tree; ``variables`` has the slots of the variables that it uses."""

    def __init__(self, checked: Checked, *, counting: bool = False) -> None:
        self._checked = checked
        self._counting = counting
        self._constants: dict[Closure, Any] = {}
        self._plain: set[Closure] = set()
        self.faults: list[tuple[int, str]] = []
        self._scopes: list[dict[str, int]] = []
        self._bound: set[int] = set()
        self.variables: dict[str, int] = {}
        self.slots: int = FIRST_SLOT

    def compile(self, node: Node) -> Closure:
        """Return what computes a node."""
        match node:
            case Literal():
                return self._literal(self._constant(node.value))
            case Name():
                return self._name(node, node.name)
            case Select():
                return self._select(node)
            case FunctionCall():
                return self._call(node)
            case ListLiteral():
                return self._counted(self._list(node), _LIST_COST)
            case MapLiteral():
                return self._counted(self._map(node.entries), _MAP_COST)
            case ObjectLiteral():
                return self._counted(self._map(node.entries), _OBJECT_COST)
            case Comprehension():
                return self._comprehension(node)

    def _counted(self, closure: Closure, cost: int) -> Closure:
        """Return the closure, and count what it costs, if costs are counted and it is not a constant."""
        if not self._counting or closure in self._constants:
            return closure

        def counted(frame: Frame) -> Any:
            value = closure(frame)
            frame[SPENT] += cost
            if frame[SPENT] > frame[BUDGET]:
                raise CostLimitError
            return value

        return counted

    # Constants.

    def _constant(self, value: Any) -> Closure:
        def constant(frame: Frame) -> Any:  # noqa: ARG001
            return value

        self._constants[constant] = value
        return constant

    def _literal(self, constant: Closure) -> Closure:
        self._plain.add(constant)
        return constant

    def _converted(self, closure: Closure, operands: Sequence[Closure], offset: int) -> Closure:
        """Convert a literal now; one that cannot be converted is a fault, even where it would never be evaluated."""
        if not all(operand in self._plain for operand in operands):
            return self._folded(closure, operands)
        try:
            return self._literal(self._constant(closure([0, 0])))
        except EvaluationError as error:
            self.faults.append((offset, error.message))
            return closure

    def _folded(self, closure: Closure, operands: Sequence[Closure]) -> Closure:
        """Return a constant in place of a closure of constants, unless it fails."""
        if not all(operand in self._constants for operand in operands):
            return closure
        try:
            return self._constant(closure([0, 0]))
        except EvaluationError:
            return closure

    # Names and fields.

    def _slot(self, node: Node) -> int | None:
        """Return the slot of a variable of a macro."""
        if not isinstance(node, Name):
            return None
        return next((scope[node.name] for scope in reversed(self._scopes) if node.name in scope), None)

    def _name(self, node: Node, name: str) -> Closure:
        reference = self._checked.references.get(id(node))
        if reference is not None and reference.meaning is not None:
            return self._constant(reference.meaning)
        slot = self._slot(node)
        if slot is not None:
            return self._counted(_bound(slot) if slot in self._bound else operator.itemgetter(slot), 1)
        return self._counted(_variable(self._declared_slot(reference.name if reference else name), name), 1)

    def _declared_slot(self, name: str) -> int:
        if name not in self.variables:
            self.variables[name] = self._new_slot()
        return self.variables[name]

    def _new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _select(self, node: Select) -> Closure:
        if id(node) in self._checked.references:
            return self._name(node, node.field)
        operand, name = self.compile(node.operand), node.field
        if node.test_only:
            return self._folded(lambda frame: has_field(operand(frame), name), [operand])
        if node.optional:
            return self._counted(self._folded(lambda frame: _optional_field(operand(frame), name), [operand]), 1)

        def field(frame: Frame) -> Any:
            value = operand(frame)
            if kind_of(value) is dict and name in value:
                return value[name]
            return select(value, name)

        return self._counted(self._folded(field, [operand]), 1)

    # Calls.

    def _call(self, node: FunctionCall) -> Closure:
        name = node.function
        if name in {"_&&_", "_||_"}:
            operands = [self.compile(argument) for argument in node.arguments]
            return self._folded(_logical(operands, deciding=name == "_||_"), operands)
        nodes = node.arguments
        if node.target is not None and id(node) not in self._checked.qualified:
            nodes = (node.target, *nodes)
        operands = [self.compile(argument) for argument in nodes]
        special = _SPECIAL.get(name)
        if special is not None and node.target is None:
            closure = special(operands)
            return self._folded(closure if name == "_?_:_" else self._counted(closure, 1), operands)
        if name in _COMPARISONS and node.target is None:
            closure = _compared(*_COMPARISONS[name], operands, self._constants)
            return self._folded(self._counted(closure, 1), operands)
        overloads = self._checked.overloads[id(node)]
        if all(overload.name in _LAZY for overload in overloads):
            return self._folded(self._counted(_LAZY[overloads[0].name](operands), 1), operands)
        closure = _counted_call(overloads, operands, name) if self._counting else _called(overloads, operands, name)
        if name in _CONVERSIONS:
            return self._converted(_called(overloads, operands, name), operands, node.offset)
        return self._folded(closure, operands)

    # Literals.

    def _list(self, node: ListLiteral) -> Closure:
        items = [self.compile(item) for item in node.items]
        if not node.optional:
            return self._folded(lambda frame: [item(frame) for item in items], items)
        optional = node.optional

        def build(frame: Frame) -> list[Any]:
            values: list[Any] = []
            for place, item in enumerate(items):
                value = item(frame)
                if place in optional:
                    if kind_of(value) is not OptionalValue:
                        raise no_such_overload()
                    if not value.present:
                        continue
                    value = value.value
                values.append(value)
            return values

        return self._folded(build, items)

    def _map(self, entries: Sequence[MapEntry]) -> Closure:
        parts = [(self.compile(entry.key), self.compile(entry.value), entry.optional) for entry in entries]

        def build(frame: Frame) -> dict[Any, Any]:
            result: dict[Any, Any] = {}
            for key, value, optional in parts:
                name, found = key(frame), value(frame)
                if kind_of(name) not in _MAP_KEYS:
                    raise EvaluationError("unsupported key type")
                if optional:
                    if kind_of(found) is not OptionalValue:
                        raise no_such_overload()
                    if not found.present:
                        continue
                    found = found.value
                put(result, name, found)
            return result

        return self._folded(build, [closure for key, value, _ in parts for closure in (key, value)])

    # Macros with variables.

    def _comprehension(self, node: Comprehension) -> Closure:
        operand = self.compile(node.operand)
        slots = [self._new_slot() for _ in node.variables]
        self._scopes.append(dict(zip(node.variables, slots, strict=True)))
        if node.macro == "bind":
            self._bound.update(slots)
        bodies = [self._counted(self.compile(body), 1) for body in node.bodies]
        self._scopes.pop()
        return LOOPS[node.macro](operand, slots, bodies)


def _variable(slot: int, name: str) -> Closure:
    def variable(frame: Frame) -> Any:
        value = frame[slot]
        if value is UNBOUND:
            raise EvaluationError(f"no such attribute(s): {name}")
        return value

    return variable


def _bound(slot: int) -> Closure:
    def bound(frame: Frame) -> Any:
        value = frame[slot]
        if kind_of(value) is FailedValue:
            raise value.error
        return value

    return bound


def _optional_field(operand: Any, name: str) -> OptionalValue:
    if kind_of(operand) is OptionalValue:
        return _optional_field(operand.value, name) if operand.present else NO_VALUE
    if kind_of(operand) is dict:
        return OptionalValue(operand[name]) if name in operand else NO_VALUE
    if operand is None:
        return NO_VALUE
    return optional_index(operand, name)


def _logical(operands: Sequence[Closure], *, deciding: bool) -> Closure:
    """Return ``&&`` or ``||``: an operand that decides makes the errors of the others forgotten."""

    def both(frame: Frame) -> Any:
        error: EvaluationError | None = None
        for operand in operands:
            try:
                verdict = operand(frame)
            except CostLimitError:
                raise
            except EvaluationError as raised:
                error = error or raised
                continue
            if verdict is deciding:
                return deciding
            if kind_of(verdict) is not bool:
                error = error or no_such_overload(verdict)
        if error is not None:
            raise error
        return not deciding

    return both


def _conditional(operands: Sequence[Closure]) -> Closure:
    condition, chosen, other = operands

    def conditional(frame: Frame) -> Any:
        verdict = condition(frame)
        if verdict is True:
            return chosen(frame)
        if verdict is False:
            return other(frame)
        raise no_such_overload(verdict)

    return conditional


def _not(operands: Sequence[Closure]) -> Closure:
    (operand,) = operands

    def negated(frame: Frame) -> bool:
        verdict = operand(frame)
        if kind_of(verdict) is bool:
            return not verdict
        raise no_such_overload(verdict)

    return negated


def _alternative(operands: Sequence[Closure], *, unwrapped: bool) -> Closure:
    """Return ``or`` or ``orValue``: the other operand is evaluated only if the first has no value."""
    optional, other = operands

    def alternative(frame: Frame) -> Any:
        found = optional(frame)
        if kind_of(found) is not OptionalValue:
            raise no_such_overload()
        if not found.present:
            return other(frame)
        return found.value if unwrapped else found

    return alternative


# By the overload's name: calls whose operands are not all evaluated.
_LAZY: Final[Mapping[str, Callable[[Sequence[Closure]], Closure]]] = {
    "optional_or_optional": partial(_alternative, unwrapped=False),
    "optional_orValue_value": partial(_alternative, unwrapped=True),
}


def _binary(implementation: Callable[[Any, Any], Any]) -> Callable[[Sequence[Closure]], Closure]:
    def build(operands: Sequence[Closure]) -> Closure:
        left, right = operands
        return lambda frame: implementation(left(frame), right(frame))

    return build


_SPECIAL: Final[Mapping[str, Callable[[Sequence[Closure]], Closure]]] = {
    "_?_:_": _conditional,
    "!_": _not,
    "_[_]": _binary(index),
    "_[?_]": _binary(optional_index),
    "@in": _binary(contains),
}


def _compared(
    quick: Callable[[Any, Any], bool],
    thorough: Callable[[Any, Any], bool],
    simple: frozenset[type[object]],
    operands: Sequence[Closure],
    constants: Mapping[Closure, Any],
) -> Closure:
    """Return a comparison: Python's own for two values of one simple type."""
    left, right = operands
    if right in constants and kind_of(constants[right]) in simple:
        constant = constants[right]
        kind = kind_of(constant)

        def with_constant(frame: Frame) -> bool:
            value = left(frame)
            return quick(value, constant) if kind_of(value) is kind else thorough(value, constant)

        return with_constant

    def compared(frame: Frame) -> bool:
        one, other = left(frame), right(frame)
        if kind_of(one) is kind_of(other) and kind_of(one) in simple:
            return quick(one, other)
        return thorough(one, other)

    return compared


def _called(overloads: Sequence[Overload], operands: Sequence[Closure], name: str) -> Closure:
    """Return a call; the first overload that accepts the values' types computes it, and is remembered for them."""
    choose = _chooser(overloads, name)
    if len(operands) == 1:
        return _called_with_one(choose, operands[0])
    if len(operands) == 2:
        return _called_with_two(choose, operands)

    def called(frame: Frame) -> Any:
        values = tuple([operand(frame) for operand in operands])
        return choose(values)[0](*values)

    return called


def _called_with_one(choose: _Chooser, operand: Closure) -> Closure:
    known: dict[type[object], Implementation] = {}

    def called(frame: Frame) -> Any:
        value = operand(frame)
        implementation = known.get(kind_of(value))
        if implementation is None:
            implementation = known[kind_of(value)] = choose((value,))[0]
        return implementation(value)

    return called


def _called_with_two(choose: _Chooser, operands: Sequence[Closure]) -> Closure:
    left, right = operands
    known: dict[tuple[type[object], type[object]], Implementation] = {}

    def called(frame: Frame) -> Any:
        one, other = left(frame), right(frame)
        kinds = (kind_of(one), kind_of(other))
        implementation = known.get(kinds)
        if implementation is None:
            implementation = known[kinds] = choose((one, other))[0]
        return implementation(one, other)

    return called


def _chooser(overloads: Sequence[Overload], name: str) -> _Chooser:
    """Return what finds the overload for values."""
    candidates = [
        (overload.accepted, overload.implementation, overload)
        for overload in overloads
        if overload.implementation is not None
    ]

    def choose(values: tuple[Any, ...]) -> tuple[Implementation, Overload]:
        if any(kind_of(value) is FailedValue for value in values):
            raise no_such_overload(*values)
        for accepted, implementation, overload in candidates:
            if all(types is None or kind_of(value) in types for types, value in zip(accepted, values, strict=True)):
                return implementation, overload
        raise no_such_overload(*values, named=_named(name))

    return choose


def _counted_call(overloads: Sequence[Overload], operands: Sequence[Closure], name: str) -> Closure:
    choose = _chooser(overloads, name)
    known: dict[tuple[type[object], ...], tuple[Implementation, CallCost]] = {}

    def called(frame: Frame) -> Any:
        values = tuple([operand(frame) for operand in operands])
        kinds = tuple(map(kind_of, values))
        found = known.get(kinds)
        if found is None:
            implementation, overload = choose(values)
            found = known[kinds] = implementation, overload.cost
        result = found[0](*values)
        frame[SPENT] += found[1](values, result)
        if frame[SPENT] > frame[BUDGET]:
            raise CostLimitError
        return result

    return called


def _named(function: str) -> str:
    """Return how a message names a function; operators are not named."""
    return "" if function.startswith(("_", "@", "-")) else f": {function}"
