"""Macros with variables as Python loops over the elements of a list or the keys of a map.

``all`` and ``exists`` discard an error if a different element decides the result. The other loops also continue after
an error, like in cel-go: an error of a condition replaces an earlier error, an error of a collected value does not. A
collecting loop first runs without error handling, and runs again in careful mode after an error, with its nested loops.

Source: cel-spec doc/langdef.md, "Macros"; cel-go ext/comprehensions.go, ext/bindings.go, ext/lists.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import length_hint
from typing import Any, Final, NamedTuple, TypeAlias, cast, final

from deltaloop.cel.costs import Cost
from deltaloop.cel.errors import CostLimitError, EvaluationError, FailedValue, no_such_overload, sound
from deltaloop.cel.operators import find, in_order, is_missing, sorting_key
from deltaloop.cel.values import LIST_KINDS, NO_VALUE, OptionalValue, kind_of
from deltaloop.schemas.work import build
from deltaloop.schemas.work import charge as charge_work

Frame: TypeAlias = list[Any]
Closure: TypeAlias = Callable[[Frame], Any]

# First slots of a frame: the cost so far, its limit, and whether loops run in careful mode.
SPENT: Final = 0
BUDGET: Final = 1
CAREFUL: Final = 2
FIRST_SLOT: Final = 3
# Turns of a loop that are charged together.
_AT_ONCE: Final = 256


@final
class Prices(NamedTuple):
    """Costs of a loop in addition to its bodies; ``failed`` is per value that is not evaluated after an error."""

    each: int
    kept: int = 0
    stopped: int = 0
    after: int = 0
    sorting: Cost | None = None
    failed: int | None = None


LoopBuilder: TypeAlias = Callable[[Closure, Sequence[int], Sequence[Closure], Prices | None], Closure]


def charge(frame: Frame, cost: int) -> None:
    """Add a cost, or raise CostLimitError."""
    frame[SPENT] += cost
    if frame[SPENT] > frame[BUDGET]:
        raise CostLimitError


def _walk(collection: Any, *, two: bool) -> tuple[Iterator[Any], Iterable[Any]]:
    """Return an iterator with a length hint, and the turns: elements, or keys with values."""
    if kind_of(collection) in LIST_KINDS:
        items = iter(cast("list[Any]", collection))
        return items, enumerate(items) if two else items
    if kind_of(collection) is dict:
        mapping = cast("dict[Any, Any]", collection)
        entries: Iterator[Any] = iter(mapping.items()) if two else iter(mapping)
        return entries, entries
    raise _not_iterable(collection)


def _not_iterable(value: Any) -> EvaluationError:
    """Return the error of a loop over a different type, with cel-go's internal name."""
    if isinstance(value, FailedValue):
        return value.error
    name = _GO_NAMES.get(kind_of(value), kind_of(value).__name__)
    return EvaluationError(f"got 'types.{name}', expected iterable type")


def _quantifier(deciding: bool) -> LoopBuilder:
    """Return a builder of loops that end at the first body with the value ``deciding``."""

    def build(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure], prices: Prices | None) -> Closure:
        two, slot, second = len(slots) == 2, slots[0], slots[-1]
        turn = _deciding_turns(bodies[0], slot, deciding)

        def run(frame: Frame) -> Any:
            collection = operand(frame)
            items, turns = _walk(collection, two=two)
            if two:
                turns = _in_slots(frame, slot, second, turns)
            error: EvaluationError | None = None
            if len(collection) <= _AT_ONCE:
                decided, error = turn(frame, turns)
            else:
                decided = False
                for part in _parts(turns, len(collection), prices):
                    decided, raised = turn(frame, part)
                    error = error or raised
                    if decided:
                        break
            if prices is not None:
                left = length_hint(items)
                turned = (len(collection) - left) * prices.each
                charge(frame, turned + (prices.stopped if left else 0) + prices.after)
            if decided:
                return deciding
            if error is not None:
                raise error
            return not deciding

        return run

    return build


_Turns: TypeAlias = Callable[[Frame, Iterable[Any]], tuple[bool, EvaluationError | None]]


def _deciding_turns(body: Closure, slot: int, deciding: bool) -> _Turns:
    """Return a function that runs turns until one decides, and returns the decision or the first error."""
    other = not deciding

    def turn(frame: Frame, turns: Iterable[Any]) -> tuple[bool, EvaluationError | None]:
        error: EvaluationError | None = None
        for frame[slot] in turns:
            try:
                verdict = body(frame)
                if verdict is other:
                    continue
            except CostLimitError:
                raise
            except EvaluationError as raised:
                error = error or raised
                continue
            if verdict is deciding:
                return True, None
            error = error or no_such_overload(verdict)
        return False, error

    return turn


def _in_slots(frame: Frame, first: int, second: int, turns: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
    for frame[first], frame[second] in turns:
        yield frame[first]


def _parts(turns: Iterable[Any], left: int, prices: Prices | None) -> Iterator[Iterable[Any]]:
    """Yield the turns of a long loop in parts, each charged before it begins."""
    each = 2 if prices is None else 2 + prices.each + prices.kept
    turning = iter(turns)
    for done in range(0, left, _AT_ONCE):
        build(8 * _AT_ONCE)
        charge_work(each * min(_AT_ONCE, left - done))
        yield islice(turning, _AT_ONCE)


_Gather: TypeAlias = Callable[[Frame, Iterable[Any]], list[Any]]
_Finish: TypeAlias = Callable[[list[Any]], Any]


def _gathering(
    operand: Closure,
    slots: Sequence[int],
    bodies: tuple[Closure | None, Closure | None],
    prices: Prices | None,
    finish: _Finish | None = None,
) -> Closure:
    """Return a loop that collects results of a body, or elements, for each turn whose condition is true."""
    condition, body = bodies
    two = len(slots) == 2
    gather = _gather_pairs(slots, condition, body) if two else _gather(slots[0], condition, body)

    def run(frame: Frame) -> Any:
        collection = operand(frame)
        if frame[CAREFUL]:
            found = _gathered_with_care(frame, collection, slots, bodies, prices)
            return found if finish is None else finish(found)
        spent = frame[SPENT]
        try:
            turns = _walk(collection, two=two)[1]
            if len(collection) <= _AT_ONCE:
                found = gather(frame, turns)
            else:
                found = [each for part in _parts(turns, len(collection), prices) for each in gather(frame, part)]
            if FailedValue in map(kind_of, found):
                raise no_such_overload(*found)
        except CostLimitError:
            raise
        except EvaluationError:
            charge_work(max(frame[SPENT] - spent, 0))
            frame[SPENT], frame[CAREFUL] = spent, True
            try:
                found = _gathered_with_care(frame, collection, slots, bodies, prices)
            finally:
                frame[CAREFUL] = False
        else:
            if prices is not None:
                charge(frame, len(collection) * prices.each + len(found) * prices.kept + prices.after)
        return found if finish is None else finish(found)

    return run


def _gather(slot: int, condition: Closure | None, body: Closure | None) -> _Gather:
    if condition is None:
        assert body is not None
        return lambda frame, turns: [body(frame) for frame[slot] in turns]
    if body is None:
        return lambda frame, turns: [frame[slot] for frame[slot] in turns if _holds(condition(frame))]
    return lambda frame, turns: [body(frame) for frame[slot] in turns if _holds(condition(frame))]


def _gather_pairs(slots: Sequence[int], condition: Closure | None, body: Closure | None) -> _Gather:
    first, second = slots
    assert body is not None
    if condition is None:
        return lambda frame, turns: [body(frame) for frame[first], frame[second] in turns]
    return lambda frame, turns: [body(frame) for frame[first], frame[second] in turns if _holds(condition(frame))]


def _gathered_with_care(
    frame: Frame,
    collection: Any,
    slots: Sequence[int],
    bodies: tuple[Closure | None, Closure | None],
    prices: Prices | None,
) -> list[Any]:
    """Run a failing loop to its end, for its error and its cost."""
    condition, body = bodies
    error: EvaluationError | None = None
    found: list[Any] = []
    kept = failed = 0
    for item in _walk(collection, two=len(slots) == 2)[1]:
        charge_work(2 if prices is None else 2 + prices.each)
        if len(slots) == 2:
            frame[slots[0]], frame[slots[1]] = item
        else:
            frame[slots[0]] = item
        try:
            if condition is not None and not _holds(condition(frame)):
                continue
        except CostLimitError:
            raise
        except EvaluationError as raised:
            error = raised
            continue
        if error is not None and prices is not None and prices.failed is not None:
            failed += prices.failed
            continue
        kept += 1
        try:
            found.append(sound(frame[slots[0]] if body is None else body(frame)))
        except CostLimitError:
            raise
        except EvaluationError as raised:
            error = error or raised
    if prices is not None:
        charge(frame, len(collection) * prices.each + kept * prices.kept + failed + prices.after)
    if error is not None:
        raise error
    return found


def _holds(verdict: Any) -> bool:
    if verdict is True:
        return True
    if verdict is False:
        return False
    raise no_such_overload(verdict)


def _both(bodies: Sequence[Closure]) -> tuple[Closure | None, Closure | None]:
    return (bodies[0] if len(bodies) == 2 else None), bodies[-1]


def _exactly_one(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure], prices: Prices | None) -> Closure:
    return _gathering(operand, slots, (bodies[0], lambda _: None), prices, lambda found: len(found) == 1)


def _filter(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure], prices: Prices | None) -> Closure:
    return _gathering(operand, slots, (bodies[0], None), prices)


def _map(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure], prices: Prices | None) -> Closure:
    return _gathering(operand, slots, _both(bodies), prices)


def _transform_map(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure], prices: Prices | None) -> Closure:
    condition, body = _both(bodies)
    slot = slots[0]
    assert body is not None

    def entry(frame: Frame) -> tuple[Any, Any]:
        return frame[slot], sound(body(frame))

    return _gathering(operand, slots, (condition, entry), prices, _as_map)


def _transform_entries(
    operand: Closure, slots: Sequence[int], bodies: Sequence[Closure], prices: Prices | None
) -> Closure:
    condition, body = _both(bodies)
    assert body is not None

    def entries(frame: Frame) -> dict[Any, Any]:
        found = body(frame)
        if kind_of(found) is not dict:
            raise no_such_overload(found)
        return cast("dict[Any, Any]", found)

    def finish(found: list[dict[Any, Any]]) -> dict[Any, Any]:
        return _as_map(entry for each in found for entry in each.items())

    return _gathering(operand, slots, (condition, entries), prices, finish)


def _as_map(entries: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key, value in entries:
        insert(result, key, value)
    return result


def insert(mapping: dict[Any, Any], key: Any, value: Any) -> None:
    """Add a new entry to a map, or raise EvaluationError."""
    if not is_missing(find(mapping, key)):
        raise EvaluationError(f"insert failed: key {key} already exists")
    put(mapping, key, value)


def put(mapping: dict[Any, Any], key: Any, value: Any) -> None:
    """Add or replace an entry; raises EvaluationError if a bool and a number would be the same key in Python."""
    if key in mapping and is_missing(find(mapping, key)):
        raise EvaluationError(f"unsupported map: a bool and a number are both keys that mean {key!r}")
    mapping[key] = value


@final
class Pending:
    __slots__ = ("compute",)

    def __init__(self, compute: Closure) -> None:
        self.compute: Closure = compute

    def resolve(self, frame: Frame, slot: int) -> Any:
        try:
            frame[slot] = self.compute(frame)
        except CostLimitError:
            raise
        except EvaluationError as error:
            frame[slot] = FailedValue(error)
        return frame[slot]


def _bind(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure], prices: Prices | None) -> Closure:
    (slot,), (body,) = slots, bodies
    compute = operand if prices is None else charged(operand, prices.each)
    pending = Pending(compute)

    def run(frame: Frame) -> Any:
        frame[slot] = pending
        return body(frame)

    return run


def charged(closure: Closure, cost: int) -> Closure:
    if not cost:
        return closure

    def run(frame: Frame) -> Any:
        frame[SPENT] += cost
        return closure(frame)

    return run


def _optional_map(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure], prices: Prices | None) -> Closure:
    (body,) = bodies
    return _optional_flat_map(operand, slots, [lambda frame: OptionalValue(body(frame))], prices)


def _optional_flat_map(
    operand: Closure, slots: Sequence[int], bodies: Sequence[Closure], prices: Prices | None
) -> Closure:
    """Return a closure that evaluates the body for a present value. cel-go evaluates the operand again for it."""
    (slot,), (body,) = slots, bodies

    def run(frame: Frame) -> Any:
        before = frame[SPENT]
        found = operand(frame)
        if kind_of(found) is not OptionalValue:
            raise no_such_overload()
        if not found.present:
            if prices is not None:
                frame[SPENT] += prices.stopped
            return NO_VALUE
        frame[slot] = found.value
        if prices is not None:
            frame[slot] = Pending(charged(lambda _: found.value, frame[SPENT] - before + prices.each))
            frame[SPENT] += prices.kept
        return body(frame)

    return run


def _sort_by(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure], prices: Prices | None) -> Closure:
    slot, body = slots[0], bodies[0]

    def pair(frame: Frame) -> tuple[Any, Any]:
        return frame[slot], sound(body(frame))

    pairs = _gathering(operand, slots, (None, pair), prices)

    def run(frame: Frame) -> list[Any]:
        found = pairs(frame)
        keys = [key for _, key in found]
        if prices is not None:
            cost = prices.sorting.actual(((), keys), None) if prices.sorting is not None else 1
            charge(frame, cost or 0)
        return in_order(sorting_key(keys), [item for item, _ in found])

    return run


_GO_NAMES: Final[Mapping[type[object], str]] = {
    type(None): "Null",
    bool: "Bool",
    int: "Int",
    float: "Double",
    str: "String",
    bytes: "Bytes",
}
LOOPS: Final[Mapping[str, LoopBuilder]] = {
    "all": _quantifier(deciding=False),
    "exists": _quantifier(deciding=True),
    "exists_one": _exactly_one,
    "existsOne": _exactly_one,
    "map": _map,
    "filter": _filter,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entries,
    "bind": _bind,
    "optMap": _optional_map,
    "optFlatMap": _optional_flat_map,
    "sortBy": _sort_by,
}
