"""Values without a Python equivalent.

``Uint`` is a subclass of int, because Python's comparison and hash are three times as fast as a wrapper's.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast, final

from deltaloop.api.json_values import mapping
from deltaloop.cel.errors import EvaluationError
from deltaloop.schemas.work import build, charge

# ``type`` without the type narrowing of type checkers, because the exact type of a value matters.
kind_of: Final[Callable[[object], type[object]]] = type
INT_LEAST: Final = -(2**63)
INT_MOST: Final = 2**63 - 1
UINT_MOST: Final = 2**64 - 1
SECOND: Final = 1_000_000_000
# First and last instant of the years 1 to 9999.
TIMESTAMP_LEAST: Final = -62_135_596_800 * SECOND
TIMESTAMP_MOST: Final = 253_402_300_800 * SECOND - 1


@final
class Uint(int):
    """Unsigned 64-bit integer, for example ``Uint(5)`` for ``5u``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Uint({int(self)})"

    def __str__(self) -> str:
        return int.__repr__(self)


@final
@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """Instant of the years 1 to 9999.

    Attributes:
        nanoseconds: Nanoseconds since 1970 (UTC).
        ahead: Offset of its text from UTC in seconds, which only affects the text.
    """

    nanoseconds: int
    ahead: int = field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """Duration in nanoseconds, at most 292 years like in Go."""

    nanoseconds: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class OptionalValue:
    """Optional value, the result of ``optional.of``, ``optional.none``, ``.?`` and ``[?]``."""

    value: object = None
    present: bool = True


@final
class SetList(list[object]):
    """List of scalars that is a set. Its order is ignored, and ``+`` adds missing items."""

    __slots__ = ()

    def __add__(self, other: list[object]) -> list[object]:  # type: ignore[override]
        build(8 * (len(self) + len(other)))
        charge(len(self) + 2 * len(other))
        known: Container[object] = self
        with suppress(TypeError):  # lists and objects are not hashable
            known = set(self)
        if known is self:
            charge(len(self) * len(other))
        return SetList([*self, *(item for item in other if item not in known)])


@final
class KeyedList(list[object]):
    """List of objects that the fields ``keys`` identify. Its order is ignored, and ``+`` replaces equal keys."""

    __slots__ = ("keys",)

    def __init__(self, items: Iterable[object], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys: tuple[str, ...] = keys

    def __add__(self, other: list[object]) -> list[object]:  # type: ignore[override]
        build(8 * (len(self) + len(other)))
        charge(20 * (len(self) + len(other)))
        return KeyedList({**by_keys(self, self.keys), **by_keys(other, self.keys)}.values(), self.keys)


def by_keys(elements: Iterable[object], keys: tuple[str, ...]) -> dict[str, object]:
    return {repr([mapping(element).get(key) for key in keys]): element for element in elements}


@final
class LazyObject:
    """Object whose fields are computed once on first use. ``compute`` may raise ``EvaluationError``."""

    __slots__ = ("_compute", "_failed", "_found", "_names")

    def __init__(self, names: Iterable[str], compute: Callable[[str], object]) -> None:
        self._names = frozenset(names)
        self._compute = compute
        self._found: dict[str, object] = {}
        self._failed: dict[str, EvaluationError] = {}

    def has(self, name: str) -> bool:
        if name not in self._names:
            return False
        self.field(name)
        return True

    def field(self, name: str) -> object:
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
    """Fields of an object that an expression creates by its type name: ``Object.spec{replicas: 1}``."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, fields: dict[str, object]) -> None:
        super().__init__(fields)
        self.type_name: str = type_name

    def cel_equals(self, other: object) -> bool:
        if not isinstance(other, ObjectValue) or self.type_name != other.type_name:
            return False
        charge_parts(self)
        charge_parts(other)
        return self == other


def charge_parts(value: object) -> None:
    """Charge one step for each part of a value, because Python compares them in one call."""
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
    if INT_LEAST <= number <= INT_MOST:
        return number
    raise EvaluationError("integer overflow")


def as_uint(number: int) -> Uint:
    if 0 <= number <= UINT_MOST:
        return Uint(number)
    raise EvaluationError("unsigned integer overflow")


def as_timestamp(nanoseconds: int, ahead: int = 0) -> Timestamp:
    """Check that an instant is in the years 1 to 9999."""
    if TIMESTAMP_LEAST <= nanoseconds <= TIMESTAMP_MOST:
        return Timestamp(nanoseconds, ahead)
    raise EvaluationError("timestamp overflow")


def as_duration(nanoseconds: int) -> Duration:
    if INT_LEAST <= nanoseconds <= INT_MOST:
        return Duration(nanoseconds)
    raise EvaluationError("integer overflow")
