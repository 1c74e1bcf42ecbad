"""Names, logic and optional fields as closures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from deltaloop.cel.errors import CostLimitError, EvaluationError, FailedValue, first_error, no_such_overload, sound
from deltaloop.cel.loops import SPENT, Closure, Frame, Pending
from deltaloop.cel.operators import contains, optional_index
from deltaloop.cel.values import NO_VALUE, OptionalValue, kind_of

UNBOUND: Final = object()


def counted_if(closure: Closure, is_found: Callable[[Any], bool]) -> Closure:
    def counted(frame: Frame) -> Any:
        value = closure(frame)
        if is_found(value):
            frame[SPENT] += 1
        return value

    return counted


def is_present(value: Any) -> bool:
    return kind_of(value) is not OptionalValue or value.present is True


def variable(slot: int, name: str) -> Closure:
    """Return the lookup of a variable that may be unbound."""

    def looked_up(frame: Frame) -> Any:
        value = frame[slot]
        if value is UNBOUND:
            raise EvaluationError(f"no such attribute(s): {name}")
        return value

    return looked_up


def bound_name(slot: int) -> Closure:
    """Return the lookup of a name whose value is computed on first use."""

    def bound(frame: Frame) -> Any:
        value = frame[slot]
        if kind_of(value) is Pending:
            value = value.resolve(frame, slot)
        if kind_of(value) is FailedValue:
            raise value.error
        return value

    return bound


def optional_field(operand: Any, name: str) -> OptionalValue:
    if kind_of(operand) is OptionalValue:
        return optional_field(operand.value, name) if operand.present else NO_VALUE
    if operand is None:
        return NO_VALUE
    return optional_index(operand, name)


def logical(operands: Sequence[Closure], *, deciding: bool) -> Closure:
    """Return ``&&`` or ``||``. An operand with the value ``deciding`` discards errors of the others."""
    other = not deciding

    def combined(frame: Frame) -> Any:
        error: EvaluationError | None = None
        for operand in operands:
            try:
                verdict = operand(frame)
            except CostLimitError:
                raise
            except EvaluationError as raised:
                error = error or raised
                continue
            if verdict is other:
                continue
            if verdict is deciding:
                return deciding
            error = error or no_such_overload(verdict)
        if error is not None:
            raise error
        return other

    return combined


def conditional(operands: Sequence[Closure]) -> Closure:
    condition, chosen, other = operands

    def branch(frame: Frame) -> Any:
        verdict = condition(frame)
        if verdict is True:
            return chosen(frame)
        if verdict is False:
            return other(frame)
        raise no_such_overload(verdict)

    return branch


def _not(operands: Sequence[Closure]) -> Closure:
    (operand,) = operands

    def negated(frame: Frame) -> bool:
        verdict = operand(frame)
        if kind_of(verdict) is bool:
            return not verdict
        raise no_such_overload(verdict)

    return negated


def _alternative(operands: Sequence[Closure], *, unwrapped: bool) -> Closure:
    """Return ``or`` or ``orValue``, which evaluates the second operand only if the first is empty."""
    optional, other = operands

    def alternative(frame: Frame) -> Any:
        found = optional(frame)
        if kind_of(found) is not OptionalValue:
            raise no_such_overload()
        if not found.present:
            return other(frame)
        return found.value if unwrapped else found

    return alternative


# By overload name: calls that do not evaluate all operands.
LAZY: Final[Mapping[str, Callable[[Sequence[Closure]], Closure]]] = {
    "optional_or_optional": partial(_alternative, unwrapped=False),
    "optional_orValue_value": partial(_alternative, unwrapped=True),
}


def _binary(implementation: Callable[[Any, Any], Any]) -> Callable[[Sequence[Closure]], Closure]:
    def build(operands: Sequence[Closure]) -> Closure:
        left, right = operands

        def called(frame: Frame) -> Any:
            one = left(frame)
            try:
                other = right(frame)
            except EvaluationError as error:
                raise first_error(one, error) from None
            return implementation(sound(one), sound(other))

        return called

    return build


SPECIAL: Final[Mapping[str, Callable[[Sequence[Closure]], Closure]]] = {"!_": _not, "@in": _binary(contains)}
