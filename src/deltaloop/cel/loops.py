"""What the macros with variables do: loops of Python over the elements of a list or the keys of a map.

A frame has a slot for each variable. A loop puts an element into its slot and runs the body.

Errors: ``all`` and ``exists`` forget an error if another element decides; the others stop at the first.

Source: cel-spec doc/langdef.md, "Macros"; cel-go ext/comprehensions.go, ext/bindings.go, ext/lists.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from deltaloop.cel.faults import CostLimitError, EvaluationError, FailedValue, no_such_overload
from deltaloop.cel.operators import find, is_missing, sorting_key
from deltaloop.cel.values import LIST_KINDS, NO_VALUE, OptionalValue, kind_of

Frame: TypeAlias = list[Any]
Closure: TypeAlias = Callable[[Frame], Any]
LoopBuilder: TypeAlias = Callable[[Closure, Sequence[int], Sequence[Closure]], Closure]


def _elements(collection: Any) -> Iterable[Any]:
    if kind_of(collection) in LIST_KINDS or kind_of(collection) is dict:
        return cast("Iterable[Any]", collection)
    raise _not_iterable(collection)


def _pairs(collection: Any) -> Iterable[tuple[Any, Any]]:
    if kind_of(collection) in LIST_KINDS:
        return enumerate(cast("list[Any]", collection))
    if kind_of(collection) is dict:
        return cast("dict[Any, Any]", collection).items()
    raise _not_iterable(collection)


def _not_iterable(value: Any) -> EvaluationError:
    """Return the error of a loop over something else; cel-go names it as its own code does."""
    if isinstance(value, FailedValue):
        return value.error
    name = _GO_NAMES.get(kind_of(value), kind_of(value).__name__)
    return EvaluationError(f"got 'types.{name}', expected iterable type")


def _quantifier(deciding: bool) -> LoopBuilder:
    """Return a builder of loops that end as soon as one body is ``deciding``."""

    def build(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure]) -> Closure:
        (body,) = bodies
        verdicts = _each(operand, slots) if len(slots) == 2 else None
        slot = slots[0]

        def run(frame: Frame) -> Any:
            error: EvaluationError | None = None
            for item in verdicts(frame) if verdicts is not None else _elements(operand(frame)):
                if verdicts is None:
                    frame[slot] = item
                try:
                    verdict = body(frame)
                except CostLimitError:
                    raise
                except EvaluationError as raised:
                    error = error or raised
                    continue
                if verdict is deciding:
                    return deciding
                if verdict is not True and verdict is not False:
                    error = error or no_such_overload(verdict)
            if error is not None:
                raise error
            return not deciding

        return run

    return build


def _each(operand: Closure, slots: Sequence[int]) -> Callable[[Frame], Iterable[tuple[Any, Any]]]:
    """Return what puts each element into its slots; it yields keys and values, or elements twice."""
    first, second = slots[0], slots[-1]
    if len(slots) == 2:

        def over_pairs(frame: Frame) -> Iterable[tuple[Any, Any]]:
            for pair in _pairs(operand(frame)):
                frame[first], frame[second] = pair
                yield pair

        return over_pairs

    def over_elements(frame: Frame) -> Iterable[tuple[Any, Any]]:
        for item in _elements(operand(frame)):
            frame[first] = item
            yield item, item

    return over_elements


def _holds(verdict: Any) -> bool:
    if kind_of(verdict) is bool:
        return verdict is True
    raise no_such_overload()


def _exactly_one(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure]) -> Closure:
    each, body = _each(operand, slots), bodies[0]
    return lambda frame: sum(_holds(body(frame)) for _ in each(frame)) == 1


def _filter(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure]) -> Closure:
    each, body = _each(operand, slots), bodies[0]
    return lambda frame: [item for item, _ in each(frame) if _holds(body(frame))]


def _map(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure]) -> Closure:
    each, body = _each(operand, slots), bodies[-1]
    if len(bodies) == 1:
        return lambda frame: [body(frame) for _ in each(frame)]
    condition = bodies[0]
    return lambda frame: [body(frame) for _ in each(frame) if _holds(condition(frame))]


def _transform_map(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure]) -> Closure:
    each, body = _each(operand, slots), bodies[-1]
    condition = bodies[0] if len(bodies) == 2 else None

    def run(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, _ in each(frame):
            if condition is None or _holds(condition(frame)):
                insert(result, key, body(frame))
        return result

    return run


def _transform_entries(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure]) -> Closure:
    each, body = _each(operand, slots), bodies[-1]
    condition = bodies[0] if len(bodies) == 2 else None

    def run(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for _ in each(frame):
            if condition is None or _holds(condition(frame)):
                entries = body(frame)
                if kind_of(entries) is not dict:
                    raise no_such_overload()
                for key, value in cast("dict[Any, Any]", entries).items():
                    insert(result, key, value)
        return result

    return run


def insert(mapping: dict[Any, Any], key: Any, value: Any) -> None:
    """Put a new entry into a map.

    Raises:
        EvaluationError: If the key is there.
    """
    if not is_missing(find(mapping, key)):
        raise EvaluationError(f"insert failed: key {key} already exists")
    put(mapping, key, value)


def put(mapping: dict[Any, Any], key: Any, value: Any) -> None:
    """Put an entry into a map, in place of the one that has the same key.

    Raises:
        EvaluationError: If the key is of no type that keys may have, or a bool and a number meet that Python's maps
            cannot tell apart (a difference from cel-go, where they are two keys).
    """
    if key in mapping and is_missing(find(mapping, key)):
        raise EvaluationError(f"unsupported map: a bool and a number are both keys that mean {key!r}")
    mapping[key] = value


def _bind(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure]) -> Closure:
    (slot,), (body,) = slots, bodies

    def run(frame: Frame) -> Any:
        try:
            frame[slot] = operand(frame)
        except CostLimitError:
            raise
        except EvaluationError as error:
            frame[slot] = FailedValue(error)  # raised where the name is used, if it is
        return body(frame)

    return run


def _optional_map(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure]) -> Closure:
    (body,) = bodies
    return _optional_flat_map(operand, slots, [lambda frame: OptionalValue(body(frame))])


def _optional_flat_map(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure]) -> Closure:
    (slot,), (body,) = slots, bodies

    def run(frame: Frame) -> Any:
        found = operand(frame)
        if kind_of(found) is not OptionalValue:
            raise no_such_overload()
        if not found.present:
            return NO_VALUE
        frame[slot] = found.value
        return body(frame)

    return run


def _sort_by(operand: Closure, slots: Sequence[int], bodies: Sequence[Closure]) -> Closure:
    each, body = _each(operand, slots), bodies[0]

    def run(frame: Frame) -> list[Any]:
        items: list[Any] = []
        keys: list[Any] = []
        for item, _ in each(frame):
            items.append(item)
            keys.append(body(frame))
        sorting_key(keys)
        return [items[place] for place in sorted(range(len(items)), key=keys.__getitem__)]

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
