"""Values that Python has no type of its own for; the others are plain: bool, int, float, str, bytes, None, list, dict.

An integer is an ``int`` of 64 bits, signed; ``Uint`` is one without a sign: a subclass, so that comparing and hashing
are Python's own, at a third of what a wrapper costs. Instants and spans count nanoseconds, as Go
does; Python's own types end at microseconds. Types are values, too: ``types.Type``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast, final

from deltaloop.api.json_values import mapping
from deltaloop.cel.faults import EvaluationError
from deltaloop.schemas.work import build, charge

# ``type``, as the language asks it of values: exactly which type a value has. Python's type checkers conclude nothing.
kind_of: Final[Callable[[object], type[object]]] = type
INT_LEAST: Final = -(2**63)
INT_MOST: Final = 2**63 - 1
UINT_MOST: Final = 2**64 - 1
SECOND: Final = 1_000_000_000
# From the first instant of the year 1 to the last of 9999.
TIMESTAMP_LEAST: Final = -62_135_596_800 * SECOND
TIMESTAMP_MOST: Final = 253_402_300_800 * SECOND - 1


@final
class Uint(int):
    """An unsigned integer of 64 bits.

    Example:
        ``Uint(5)`` is what ``5u`` is in an expression.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Uint({int(self)})"

    def __str__(self) -> str:
        return int.__repr__(self)


@final
@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """An instant, in nanoseconds since 1970 (UTC), of the years 1 to 9999.

    Attributes:
        nanoseconds: Since 1970.
        ahead: The seconds that its text is ahead of UTC; nothing but its text depends on it.
    """

    nanoseconds: int
    ahead: int = field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time, in nanoseconds; at most 292 years, as Go's."""

    nanoseconds: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class OptionalValue:
    """A value that may be missing: what ``optional.of``, ``optional.none``, ``.?`` and ``[?]`` give."""

    value: object = None
    present: bool = True


@final
class SetList(list[object]):
    """A list of scalars that is a set: its order is no matter, and ``+`` adds what is not there yet."""

    __slots__ = ()

    def __add__(self, other: list[object]) -> list[object]:  # type: ignore[override]
        build(8 * (len(self) + len(other)))
        charge(len(self) + 2 * len(other))
        known: Container[object] = self
        with suppress(TypeError):  # lists and objects have no hash
            known = set(self)
        if known is self:
            charge(len(self) * len(other))
        return SetList([*self, *(item for item in other if item not in known)])


@final
class KeyedList(list[object]):
    """A list of objects that some fields tell apart: its order is no matter, and ``+`` puts one in another's place.

    Attributes:
        keys: The names of these fields.
    """

    __slots__ = ("keys",)

    def __init__(self, items: Iterable[object], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys: tuple[str, ...] = keys

    def __add__(self, other: list[object]) -> list[object]:  # type: ignore[override]
        build(8 * (len(self) + len(other)))
        charge(20 * (len(self) + len(other)))
        return KeyedList({**by_keys(self, self.keys), **by_keys(other, self.keys)}.values(), self.keys)


def by_keys(elements: Iterable[object], keys: tuple[str, ...]) -> dict[str, object]:
    """Return objects by what tells them apart."""
    return {repr([mapping(element).get(key) for key in keys]): element for element in elements}


@final
class LazyObject:
    """An object whose fields are computed when they are used for the first time, and once."""

    __slots__ = ("_compute", "_failed", "_found", "_names")

    def __init__(self, names: Iterable[str], compute: Callable[[str], object]) -> None:
        """Have these fields.

        Args:
            names: Their names.
            compute: Returns a field's value, or raises ``EvaluationError``.
        """
        self._names = frozenset(names)
        self._compute = compute
        self._found: dict[str, object] = {}
        self._failed: dict[str, EvaluationError] = {}

    def has(self, name: str) -> bool:
        """Tell whether there is such a field; it is computed.

        Raises:
            EvaluationError: If it has no value.
        """
        if name not in self._names:
            return False
        self.field(name)
        return True

    def field(self, name: str) -> object:
        """Return a field's value.

        Raises:
            EvaluationError: If it has none.
        """
        if name not in self._names:
            raise EvaluationError(f"no such key: {name}")
        if name in self._failed:
            raise self._failed[name]
        if name not in self._found:
            try:
                self._found[name] = self._compute(name)
            except EvaluationError as error:
                self._failed[name] = error
                raise
        return self._found[name]


@final
class ObjectValue(dict[str, object]):
    """The fields of an object that an expression makes by the name of its type: ``Object.spec{replicas: 1}``.

    Attributes:
        type_name: The name.
    """

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, fields: dict[str, object]) -> None:
        super().__init__(fields)
        self.type_name: str = type_name

    def cel_equals(self, other: object) -> bool:
        """Tell whether another value is an object of the same type with the same fields."""
        if not isinstance(other, ObjectValue) or self.type_name != other.type_name:
            return False
        charge_parts(self)
        charge_parts(other)
        return self == other


def charge_parts(value: object) -> None:
    """Charge one step for each part of a value, as often as it is in there; Python compares them in one call."""
    waiting: list[Any] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            charge(2 * len(cast("dict[object, object]", each)))
            waiting.extend(cast("dict[object, object]", each).values())
        elif isinstance(each, list):
            charge(2 * len(cast("list[object]", each)))
            waiting.extend(cast("list[object]", each))


LIST_KINDS: Final = frozenset({list, SetList, KeyedList})
NO_VALUE: Final = OptionalValue(present=False)


def as_int(number: int) -> int:
    """Return an integer that fits 64 bits.

    Raises:
        EvaluationError: If it does not.
    """
    if INT_LEAST <= number <= INT_MOST:
        return number
    raise EvaluationError("integer overflow")


def as_uint(number: int) -> Uint:
    """Return an unsigned integer that fits 64 bits.

    Raises:
        EvaluationError: If it does not.
    """
    if 0 <= number <= UINT_MOST:
        return Uint(number)
    raise EvaluationError("unsigned integer overflow")


def as_timestamp(nanoseconds: int, ahead: int = 0) -> Timestamp:
    """Return an instant of the years 1 to 9999.

    Raises:
        EvaluationError: If it is outside.
    """
    if TIMESTAMP_LEAST <= nanoseconds <= TIMESTAMP_MOST:
        return Timestamp(nanoseconds, ahead)
    raise EvaluationError("timestamp overflow")


def as_duration(nanoseconds: int) -> Duration:
    """Return a span of time that fits 64 bits.

    Raises:
        EvaluationError: If it does not.
    """
    if INT_LEAST <= nanoseconds <= INT_MOST:
        return Duration(nanoseconds)
    raise EvaluationError("integer overflow")
