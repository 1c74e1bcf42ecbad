"""Compile a checked tree to closures over plain values.

A program is a function of a frame, which is a list with a slot for each variable. With a budget, the tree is compiled a
second time. A *region* is a part that is always evaluated together, such as one turn of a loop or one side of ``&&``.
Its known cost is added at once, and closures count costs that depend on values.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from deltaloop.cel.calls import (
    CALL_WITH_CONSTANT,
    COMPARISONS,
    OPERATOR_SIGNS,
    UNGUARDED,
    VariableCall,
    call_by_values,
    chooser,
    comparison,
    plain_call,
    price_of,
    priced_call,
    priced_call_of_two,
    text_comparison,
    unguarded,
    variable_call,
    variable_call_shape,
)
from deltaloop.cel.checker import Checked
from deltaloop.cel.closures import (
    LAZY,
    SPECIAL,
    bound_name,
    conditional,
    counted_if,
    is_present,
    logical,
    optional_field,
    variable,
)
from deltaloop.cel.costs import (
    LIST_COST,
    MAP_COST,
    OBJECT_COST,
    STANDARD_COSTS,
    UNLIMITED,
    Cost,
    paired,
)
from deltaloop.cel.errors import CostLimitError, EvaluationError, InternalError, no_such_overload, sound
from deltaloop.cel.library import Overload
from deltaloop.cel.loops import (
    FIRST_SLOT,
    LOOPS,
    SPENT,
    Closure,
    Frame,
    Prices,
    charged,
    put,
)
from deltaloop.cel.operators import (
    contains,
    has_field,
    index,
    optional_index,
    select,
)
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
from deltaloop.cel.unification import optional_parameter
from deltaloop.cel.values import ObjectValue, OptionalValue, Uint, kind_of
from deltaloop.schemas.patterns.matching import pattern_error

# Functions that cel-go calls before a program runs if their argument is a literal.
CONVERSIONS: Final = frozenset(
    {"type", "bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint"}
)
_SCALARS: Final = frozenset({"bool", "int", "uint", "double", "timestamp", "duration"})
_PRIMITIVES: Final = frozenset({bool, int, Uint, float, str})
_UNTYPED: Final = frozenset({"dyn", "error", "param"})
# Costs of each macro without its bodies: per turn, per collected item, for an early end, and once at the end.
_PRICES: Final = {
    "all": Prices(3, stopped=2, after=1),
    "exists": Prices(4, stopped=3, after=1),
    "exists_one": Prices(0, 2, after=2),
    "existsOne": Prices(0, 2, after=2),
    "map": Prices(0, 12, after=1),
    "filter": Prices(0, 13, after=1),
    "transformList": Prices(0, 12, after=1),
    "transformMap": Prices(0, 3, after=1, failed=1),
    "transformMapEntry": Prices(0, 2, after=1),
    "bind": Prices(0),
    "optMap": Prices(1, 1, stopped=1),
    "optFlatMap": Prices(1, 0, stopped=1),
    "sortBy": Prices(0, 12, after=1),
}
_ONE_UNIT_OF_TEXT: Final = 10
_MAP_KEYS: Final = frozenset({str, int, bool, Uint, float, type(None)})


class Compiler:
    def __init__(self, checked: Checked, costs: Mapping[str, Cost] | None = None) -> None:
        self._checked = checked
        self._costs = costs
        self._constants: dict[Closure, Any] = {}
        self._plain: set[Closure] = set()
        self.faults: list[tuple[int, str]] = []
        self._scopes: list[dict[str, int]] = []
        self._bound: set[int] = set()
        self.variables: dict[str, int] = {}
        self.slots: int = FIRST_SLOT
        self.fixed: int = 0  # certain cost of the enclosing region
        self._slot_of: dict[Closure, int] = {}  # closures that only read a macro variable's slot
        self._slot_calls: dict[Closure, VariableCall] = {}
        self._alone: dict[Closure, Closure] = {}  # left operands without the evaluation of the right operand
        self._counting: int = 0  # number of closures that count costs
        self._later: int = 0  # number of fields and indexes in a chain after the next node

    def compile(self, node: Node) -> Closure:
        later, self._later = self._later, 0
        match node:
            case Literal():
                return self._literal(self._constant(node.value))
            case Name():
                return self._name(node, node.name)
            case Select():
                return self._select(node, later)
            case FunctionCall():
                return self._call(node, later)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node.entries, MAP_COST)
            case ObjectLiteral():
                return self._map(node.entries, OBJECT_COST, node.name.removeprefix("."))
            case Comprehension():
                return self._comprehension(node)

    def _region(self, node: Node) -> tuple[Closure, int]:
        before, self.fixed = self.fixed, 0
        closure = self.compile(node)
        cost, self.fixed = self.fixed, before
        return closure, cost

    def _branch(self, node: Node, discount: int = 0) -> Closure:
        """Compile a region that is not always evaluated and counts its own cost."""
        closure, cost = self._region(node)
        if self._costs is None or cost == discount:
            return closure
        self._counting += 1
        return charged(closure, cost - discount)

    def _attribute_cost(self, node: Node) -> int | None:
        """Return the cost of a chain of fields and indexes without them, or None for other nodes."""
        if id(node) in self._checked.references:
            reference = self._checked.references[id(node)]
            return 1 if reference.meaning is None else None
        if isinstance(node, Name):
            return 1
        if isinstance(node, Select):
            inside = self._attribute_cost(node.operand)
            return 0 if node.test_only else 1 if inside is None else inside
        if isinstance(node, FunctionCall) and node.target is None:
            if node.function == "_?_:_":
                return 0
            if node.function in {"_[_]", "_[?_]"}:
                inside = self._attribute_cost(node.arguments[0])
                return 1 if inside is None else inside
        return None

    # Constants.

    def _constant(self, value: Any) -> Closure:
        def constant(frame: Frame) -> Any:  # noqa: ARG001
            return value

        self._constants[constant] = value
        return constant

    def _literal(self, constant: Closure) -> Closure:
        self._plain.add(constant)
        return constant

    def _converted(
        self,
        name: str,
        overloads: Sequence[Overload],
        operands: list[Closure],
        offset: int,
    ) -> Closure:
        """Convert a literal at compile time. A failure is an error of the program, even in a part that never runs."""
        closure = plain_call(overloads, operands, name)
        if not all(operand in self._plain for operand in operands):
            return self._priced(closure, name, overloads, operands)
        try:
            return self._literal(self._constant(closure([0, UNLIMITED, False])))
        except EvaluationError as error:
            self.faults.append((offset, error.message))
            return closure

    def _folded(self, closure: Closure, operands: Sequence[Closure]) -> Closure:
        if not all(operand in self._constants for operand in operands):
            return closure
        try:
            return self._constant(closure([0, UNLIMITED, False]))
        except (EvaluationError, InternalError):
            return closure

    # Names and fields.

    def _slot(self, node: Node) -> int | None:
        if not isinstance(node, Name):
            return None
        return next((scope[node.name] for scope in reversed(self._scopes) if node.name in scope), None)

    def _name(self, node: Node, name: str) -> Closure:
        reference = self._checked.references.get(id(node))
        if reference is not None and reference.meaning is not None:
            return self._literal(self._constant(reference.meaning))
        self.fixed += 1
        slot = self._slot(node)
        if slot is not None:
            closure = bound_name(slot) if slot in self._bound else operator.itemgetter(slot)
            if slot not in self._bound:
                self._slot_of[closure] = slot
            return closure
        return variable(self._declared_slot(reference.name if reference else name), name)

    def _declared_slot(self, name: str) -> int:
        if name not in self.variables:
            self.variables[name] = self._new_slot()
        return self.variables[name]

    def _new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _qualified(self, operand: Node, later: int, *, optional: bool, tested: bool = False) -> tuple[Closure, bool]:
        """Compile the operand of a field or an index. Return whether the lookup can miss, which then has no cost."""
        is_chain = self._attribute_cost(operand) is not None
        may_miss = optional or optional_parameter(self._checked.types[id(operand)]) is not None
        if is_chain:
            self._later = later + (not may_miss)
        closure = self.compile(operand)
        self.fixed += (not is_chain) + (not may_miss) - tested
        if self._costs is not None and (not is_chain or _is_conditional(operand)):
            closure = self._refunding(closure, later + (not may_miss))
        return closure, may_miss and self._costs is not None

    def _refunding(self, closure: Closure, cost: int, *, in_turn: bool = False) -> Closure:
        """Return a closure that refunds the cost of skipped work if it fails, ``in_turn`` also for a failed value."""
        if closure in self._constants:
            return closure

        def refunding(frame: Frame) -> Any:
            try:
                return sound(closure(frame)) if in_turn else closure(frame)
            except EvaluationError:
                frame[SPENT] -= cost
                raise

        return refunding

    def _select(self, node: Select, later: int) -> Closure:
        if id(node) in self._checked.references:
            return self._name(node, node.field)
        operand, counts = self._qualified(node.operand, later, optional=node.optional, tested=node.test_only)
        name = node.field
        if node.test_only:
            tested = self._folded(lambda frame: has_field(operand(frame), name), [operand])
            return counted_if(tested, bool) if counts else tested
        if node.optional:
            found = self._folded(lambda frame: optional_field(operand(frame), name), [operand])
            return counted_if(found, is_present) if counts else found

        def field(frame: Frame) -> Any:
            value = operand(frame)
            if kind_of(value) is dict and name in value:
                return value[name]
            try:
                return select(value, name)
            except EvaluationError:
                frame[SPENT] -= later
                raise

        return counted_if(field, is_present) if counts else self._folded(field, [operand])

    def _index(self, node: FunctionCall, later: int) -> Closure:
        optional = node.function == "_[?_]"
        operand, counts = self._qualified(node.arguments[0], later, optional=optional)
        key, cost = self._region(node.arguments[1])
        cost -= self._attribute_cost(node.arguments[1]) or 0
        self.fixed += cost
        find = optional_index if optional else index
        is_constant, known = key in self._constants, self._constants.get(key)

        def indexed(frame: Frame) -> Any:
            try:
                value = operand(frame)
            except EvaluationError:
                frame[SPENT] -= cost
                raise
            try:
                return find(value, known if is_constant else sound(key(frame)))
            except EvaluationError:
                frame[SPENT] -= later
                raise

        closure = self._folded(indexed, [operand, key])
        return counted_if(closure, is_present) if counts else closure

    # Calls.

    def _call(self, node: FunctionCall, later: int) -> Closure:
        name = node.function
        if node.target is None:
            if name in {"_&&_", "_||_"}:
                operands = [self.compile(node.arguments[0]), *map(self._branch, node.arguments[1:])]
                return self._folded(logical(operands, deciding=name == "_||_"), operands)
            if name == "_?_:_":
                asked, *chosen = node.arguments
                branches = [self._branch(each, self._attribute_cost(each) or 0) for each in chosen]
                operands = [self.compile(asked), *branches]
                return self._folded(conditional(operands), operands)
            if name in {"_[_]", "_[?_]"}:
                return self._index(node, later)
        nodes = node.arguments
        if node.target is not None and id(node) in self._checked.qualified:
            name = f"{dotted_name(node.target)}.{name}"
        elif node.target is not None:
            nodes = (node.target, *nodes)
        overloads = self._checked.overloads[id(node)]
        if all(overload.name in LAZY for overload in overloads):
            operands = [self.compile(nodes[0]), self._branch(nodes[1])]
            return self._folded(LAZY[overloads[0].name](operands), operands)
        before = self.fixed
        in_turn = len(nodes) > 2 or (len(overloads) > 1 and not name.startswith(OPERATOR_SIGNS))
        operands = self._in_turn(nodes) if in_turn else self._side_by_side(nodes)
        if name in CONVERSIONS:
            return self._converted(name, overloads, operands, node.offset)
        self._check_patterns(overloads, operands, node.offset)
        if name in COMPARISONS:
            return self._comparison(name, overloads, nodes, operands)
        if name == "@in" and len(overloads) == 1 and overloads[0].name == "in_list":
            quick = self._in_constant(operands)
            if quick is not None:
                if quick in self._plain:
                    self.fixed = before  # the element is not evaluated
                return quick
        if name in UNGUARDED and len(overloads) == 1:
            operands = [unguarded(operands[0], is_list=True)]
        return self._priced(self._computed(name, overloads, operands), name, overloads, operands)

    def _side_by_side(self, nodes: Sequence[Node]) -> list[Closure]:
        """Compile one or two operands. The second is evaluated for its cost even if the first fails."""
        left = self.compile(nodes[0]) if nodes else None
        if left is None or len(nodes) == 1:
            return [] if left is None else [left]
        before = self._counting
        right = self.compile(nodes[1])
        if self._counting == before or left in self._constants:
            return [left, right]

        def and_right(frame: Frame) -> Any:
            try:
                return left(frame)
            except CostLimitError:
                raise
            except EvaluationError:
                with suppress(EvaluationError):
                    right(frame)
                raise

        self._alone[and_right] = left
        return [and_right, right]

    def _in_turn(self, nodes: Sequence[Node]) -> list[Closure]:
        regions = [self._region(node) for node in nodes]
        left = sum(cost for _, cost in regions)
        self.fixed += left
        operands: list[Closure] = []
        for closure, cost in regions:
            left -= cost
            refunds = self._costs is not None and left
            operands.append(self._refunding(closure, left, in_turn=True) if refunds else closure)
        return operands

    def _computed(self, name: str, overloads: Sequence[Overload], operands: list[Closure]) -> Closure:
        special = SPECIAL.get(name)
        if special is not None:
            return special(operands)
        call = (
            variable_call_shape(overloads, self._slot_of[operands[0]])
            if operands and operands[0] in self._slot_of
            else None
        )
        if call is not None and len(operands) == 1:
            closure = variable_call(overloads, call, name)
            self._slot_calls[closure] = call
            return closure
        return plain_call(overloads, operands, name)

    def _check_patterns(self, overloads: Sequence[Overload], operands: list[Closure], offset: int) -> None:
        for overload in overloads:
            if overload.pattern is not None and operands[overload.pattern] in self._plain:
                pattern = self._constants[operands[overload.pattern]]
                why = pattern_error(pattern) if kind_of(pattern) is str else ""
                if why:
                    self.faults.append((offset, why))
                    return

    def _in_constant(self, operands: list[Closure]) -> Closure | None:
        """Return a lookup in a list of constants, or None. It has no cost, because cel-go builds a set."""
        element, collection = operands
        if collection not in self._plain:
            return None
        items = self._constants[collection]
        if not items:
            return self._literal(self._constant(False))
        if not all(kind_of(item) in _PRIMITIVES for item in items):
            return None
        return self._folded(lambda frame: contains(element(frame), items), operands)

    def _comparison(
        self, name: str, overloads: Sequence[Overload], nodes: Sequence[Node], operands: list[Closure]
    ) -> Closure:
        closure = self._inlined_comparison(name, operands)
        kinds = {self._checked.types[id(node)].kind for node in nodes}
        if len(kinds) == 1 and kinds <= _SCALARS:
            self.fixed += 1
            return self._folded(closure, operands)
        if self._costs is not None and name in ("_==_", "_!=_"):
            texts = [self._constants[each] for each in operands if kind_of(self._constants.get(each)) is str]
            if kinds == {"string"} and len(texts) == 1 and 0 < len(texts[0]) <= _ONE_UNIT_OF_TEXT:
                self.fixed += 1  # without cost if the other string is empty
                return self._folded(text_comparison(name, operands, self._constants), operands)
        return self._priced(closure, name, overloads, operands)

    def _inlined_comparison(self, name: str, operands: list[Closure]) -> Closure:
        quick = COMPARISONS[name][0]
        closure = comparison(*COMPARISONS[name], operands, self._constants)
        call = self._slot_calls.get(operands[0])
        if call is None or operands[1] not in self._constants:
            return closure
        constant = self._constants[operands[1]]
        is_simple = call.result is kind_of(constant) and call.result in COMPARISONS[name][2]
        return CALL_WITH_CONSTANT[quick](call, constant, closure) if is_simple else closure

    # Costs.

    def _priced(self, closure: Closure, name: str, overloads: Sequence[Overload], operands: list[Closure]) -> Closure:
        """Return a call that counts its cost, unless the cost is certain and belongs to the region."""
        if self._costs is None:
            return self._folded(closure, operands)
        only = overloads[0] if len(overloads) == 1 else None
        found = (only.cost if only else None, self._costs.get(name), STANDARD_COSTS.get(only.name) if only else None)
        costs = [cost for cost in found if cost is not None]
        known = [self._constants.get(operand) for operand in operands]
        if not costs or all(self._is_certain(cost, operands) for cost in costs):
            self.fixed += price_of(costs)(known, None)
            return self._folded(closure, operands)
        if all(operand in self._constants for operand in operands):
            folded = self._folded(closure, operands)
            if folded in self._constants:
                self.fixed += price_of(costs)(known, self._constants[folded])
                return folded
        self._counting += 1
        # A call with a compiled pattern is skipped if the string is an error.
        both = len(operands) < 3 and not (only and only.pattern is not None and operands[only.pattern] in self._plain)
        both = both and (only is not None or name.startswith(OPERATOR_SIGNS))
        alone = [self._alone.get(operand, operand) for operand in operands]
        if len(alone) != 2 or not both:
            return priced_call(call_by_values(name, overloads), alone, price_of(costs), both=both)
        compute = COMPARISONS[name][1] if name in COMPARISONS else None
        return priced_call_of_two(compute, chooser(overloads, name), alone, price_of(costs))

    def _is_certain(self, cost: Cost, operands: list[Closure]) -> bool:
        return cost.reads is not None and all(
            place >= len(operands) or operands[place] in self._constants for place in cost.reads
        )

    # Literals.

    def _list(self, node: ListLiteral) -> Closure:
        items = self._in_turn(node.items)
        if not node.optional:
            return self._built(lambda frame: [sound(item(frame)) for item in items], items, LIST_COST)
        optional = node.optional

        def build(frame: Frame) -> list[Any]:
            values: list[Any] = []
            for place, item in enumerate(items):
                value = sound(item(frame))
                if place in optional:
                    if kind_of(value) is not OptionalValue:
                        raise no_such_overload()
                    if not value.present:
                        continue
                    value = value.value
                values.append(value)
            return values

        return self._built(build, items, LIST_COST)

    def _map(self, entries: Sequence[MapEntry], cost: int, type_name: str = "") -> Closure:
        compiled = iter(self._in_turn([node for entry in entries for node in (entry.key, entry.value)]))
        parts = [(next(compiled), next(compiled), entry.optional) for entry in entries]

        def build(frame: Frame) -> dict[Any, Any] | ObjectValue:
            result: dict[Any, Any] = {}
            for key, value, optional in parts:
                name, found = sound(key(frame)), sound(value(frame))
                if kind_of(name) not in _MAP_KEYS:
                    raise EvaluationError("unsupported key type")
                if optional:
                    if kind_of(found) is not OptionalValue:
                        raise no_such_overload()
                    if not found.present:
                        continue
                    found = found.value
                put(result, name, found)
            return ObjectValue(type_name, result) if type_name else result

        return self._built(build, [closure for key, value, _ in parts for closure in (key, value)], cost)

    def _built(self, build: Closure, parts: Sequence[Closure], cost: int) -> Closure:
        """Return the closure of a literal. Literals of constants are built at compile time."""
        closure = self._folded(build, parts)
        if closure in self._constants and cost != OBJECT_COST and all(part in self._plain for part in parts):
            return self._literal(closure)
        self.fixed += cost
        return closure

    # Macros with variables.

    def _comprehension(self, node: Comprehension) -> Closure:
        self._counting += 1
        lazy = node.macro == "bind"
        again = self.fixed
        operand, own = self._region(node.operand) if lazy else (self.compile(node.operand), 0)
        again = self.fixed - again
        slots = [self._new_slot() for _ in node.variables]
        self._scopes.append(dict(zip(node.variables, slots, strict=True)))
        if lazy or (node.macro in USED_TWICE and self._costs is not None):
            self._bound.update(slots)
        bodies = [self._region(body) for body in node.bodies]
        self._scopes.pop()
        if node.macro == "sortBy" and self._checked.types[id(node.bodies[0])].kind not in _UNTYPED:
            operand = unguarded(operand)
            bodies = [(unguarded(body) if body not in self._constants else body, cost) for body, cost in bodies]
        if self._costs is None:
            return LOOPS[node.macro](operand, slots, [body for body, _ in bodies], None)
        prices = _PRICES[node.macro]
        if node.macro in USED_TWICE:
            self.fixed += 1  # test for a value
            prices = prices._replace(each=prices.each + again)
            return LOOPS[node.macro](operand, slots, [charged(*bodies[0])], prices)
        if lazy:
            return LOOPS[node.macro](operand, slots, [charged(*bodies[0])], prices._replace(each=own))
        return LOOPS[node.macro](operand, slots, [body for body, _ in bodies], self._prices(node, bodies, prices))

    def _prices(self, node: Comprehension, bodies: Sequence[tuple[Closure, int]], prices: Prices) -> Prices:
        (_, first), (last, cost) = bodies[0], bodies[-1]
        if node.macro in ("map", "transformList", "sortBy") and last in self._plain:
            prices = prices._replace(kept=prices.kept - LIST_COST)  # list of a constant
        if node.macro == "sortBy":
            self.fixed += 2  # the list is bound to a name that is used twice
            kind = self._checked.types[id(node.bodies[0])].kind
            sorting = paired(1) if kind not in _UNTYPED else None
            return prices._replace(each=0, kept=prices.kept + cost, sorting=sorting)
        if len(bodies) == 2:
            return prices._replace(each=first, kept=prices.kept + cost)
        if node.macro in ("map", "transformList", "transformMap", "transformMapEntry"):
            return prices._replace(kept=prices.kept + cost)
        return prices._replace(each=prices.each + cost)


def _is_conditional(node: Node) -> bool:
    return isinstance(node, FunctionCall) and node.function == "_?_:_"
