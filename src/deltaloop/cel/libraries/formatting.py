"""String formatting in the English locale: ``"%s has %d".format([name, count])``.

Source: cel-go ext/formatting.go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, cast

from deltaloop.cel.errors import EvaluationError, FailedValue
from deltaloop.cel.libraries.conversions import CONVERSIONS
from deltaloop.cel.types import REPRESENTED, Type, runtime_type, type_name
from deltaloop.cel.values import LIST_KINDS, Duration, Timestamp, Uint, kind_of
from deltaloop.schemas.work import build, charge

CLAUSE: Final = re.compile(r"%(?:(%)|(\.[0-9]*)?(.)?)", re.DOTALL)
_PRECISION: Final = 6
_LONGEST_PRECISION: Final = 3  # digits, because no double has a thousand digits
_RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_INTEGERS: Final = "decimal clause can only be used on integers"
_DOUBLES: Final = "fixed-point clause can only be used on doubles"
_POWERS: Final = "scientific clause can only be used on doubles"
_BITS: Final = "only integers and bools can be formatted as binary"
_OCTALS: Final = "octal clause can only be used on integers"
_HEX: Final = "only integers, byte buffers, and strings can be formatted as hex"
_STRINGS: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps"
)
_WRITTEN: Final = frozenset(
    {"list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"}
)
_TO_TEXT: Final = {
    REPRESENTED[overload.parameters[0].kind]: overload.implementation
    for overload in CONVERSIONS.functions["string"]
    if overload.implementation is not None
}


def format_text(pattern: str, arguments: list[Any]) -> str:
    taken = 0

    def clause(match: re.Match[str]) -> str:
        nonlocal taken
        if match[1]:
            return "%"
        if taken >= len(arguments):
            raise EvaluationError(f"index {taken} out of range")
        why = clause_error(match)
        if why:
            raise EvaluationError(why)
        value = arguments[taken]
        taken += 1
        charge(10)
        try:
            return _CLAUSES[match[3]][0](value, int(match[2][1:]) if match[2] else _PRECISION)
        except _UnfitError as error:
            raise EvaluationError(f"error during formatting: {error.message}") from None

    return CLAUSE.sub(clause, pattern)


def clause_error(match: re.Match[str]) -> str:
    """Return the error of a clause, for example ``%.q``, or ""."""
    if match[3] is None:
        return "unexpected end of string"
    if match[2] and not 0 < len(match[2][1:]) <= _LONGEST_PRECISION:
        return "could not parse formatting clause: error while parsing precision: it is no small number"
    if match[3] not in _CLAUSES:
        return f'could not parse formatting clause: unrecognized formatting clause "{match[3]}"'
    return ""


def unfit_argument(match: re.Match[str], argument: Type) -> str:
    """Return why a clause rejects values of a type, or ""."""
    why = clause_error(match)
    if why or argument.kind == "dyn":
        return why
    _, kinds, allowed = _CLAUSES[match[3]]
    if argument.kind in kinds:
        return ""
    return f"error during formatting: {allowed}, was given {type_name(argument)}"


class _UnfitError(Exception):
    def __init__(self, allowed: str, value: Any) -> None:
        super().__init__(allowed)
        self.message = f"{allowed}, was given {type_name(runtime_type(value))}"


def _text(value: Any, digits: int = 0) -> str:  # noqa: ARG001
    kind = kind_of(value)
    if kind is str:
        build(4 * len(value))
    if value is None:
        return "null"
    if kind is FailedValue:
        raise EvaluationError("error during formatting: no formatting function for error")
    if kind in LIST_KINDS:
        charge(10 * len(value))
        return f"[{', '.join(_nested(item) for item in cast('list[Any]', value))}]"
    if kind is dict:
        charge(20 * len(value))
        entries = cast("dict[Any, Any]", value).items()
        return f"{{{', '.join(f'{key}:{item}' for key, item in sorted((_nested(k), _nested(v)) for k, v in entries))}}}"
    if kind is Type:
        return type_name(value)
    convert = _TO_TEXT.get(kind)
    if convert is None:
        raise _UnfitError(_STRINGS, value)
    return str(convert(value))


def _nested(value: Any) -> str:
    """Format a value inside a list or a map, where strings have quotes."""
    kind = kind_of(value)
    text = _text(value)
    if kind is float:
        return f"{value:.6f}" if math.isfinite(value) else f'"{text}"'
    if kind is str:
        return f'"{text}"'
    if kind is bytes:
        return f'b"{text}"'
    if kind is Timestamp:
        return f'timestamp("{text}")'
    return f'duration("{text}")' if kind is Duration else text


def _decimal(value: Any, digits: int) -> str:  # noqa: ARG001
    if kind_of(value) in {int, Uint}:
        return str(value)
    raise _UnfitError(_INTEGERS, value)


def _number(value: Any, allowed: str) -> float:
    if kind_of(value) is float:
        return float(value)
    if kind_of(value) is str and value in {"NaN", "Infinity", "-Infinity"}:
        return float(value)
    raise _UnfitError(allowed, value)


def _not_finite(number: float) -> str:
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _fixed(value: Any, digits: int) -> str:
    number = _number(value, _DOUBLES)
    return f"{number:,.{digits}f}" if math.isfinite(number) else _not_finite(number)


def _scientific(value: Any, digits: int) -> str:
    number = _number(value, _POWERS)
    if not math.isfinite(number):
        return _not_finite(number).rjust(6 if digits == _PRECISION else 0)
    # Kubernetes always writes six digits.
    mantissa, _, power = f"{number:.{_PRECISION}e}".partition("e")
    return f"{mantissa}×10{power.removeprefix('+').translate(_RAISED)}"


def _binary(value: Any, digits: int) -> str:  # noqa: ARG001
    if kind_of(value) in {int, Uint, bool}:
        return f"{int(value):b}"
    raise _UnfitError(_BITS, value)


def _octal(value: Any, digits: int) -> str:  # noqa: ARG001
    if kind_of(value) in {int, Uint}:
        return f"{int(value):o}"
    raise _UnfitError(_OCTALS, value)


def _hexadecimal(value: Any, digits: int) -> str:  # noqa: ARG001
    kind = kind_of(value)
    if kind is str:
        return str(value.encode("utf-8", "surrogatepass").hex())
    if kind is bytes:
        return str(value.hex())
    if kind in {int, Uint}:
        return f"{int(value):x}"
    raise _UnfitError(_HEX, value)


# Formatter, accepted types, and error message of each clause.
_CLAUSES: Final[dict[str, tuple[Callable[[Any, int], str], frozenset[str], str]]] = {
    "s": (_text, _WRITTEN, _STRINGS),
    "d": (_decimal, frozenset({"int", "uint"}), _INTEGERS),
    "f": (_fixed, frozenset({"double", "string"}), _DOUBLES),
    "e": (_scientific, frozenset({"double", "string"}), _POWERS),
    "b": (_binary, frozenset({"int", "uint", "bool"}), _BITS),
    "o": (_octal, frozenset({"int", "uint"}), _OCTALS),
    "x": (_hexadecimal, frozenset({"int", "uint", "string", "bytes"}), _HEX),
    "X": (
        lambda value, digits: _hexadecimal(value, digits).upper(),
        frozenset({"int", "uint", "string", "bytes"}),
        _HEX,
    ),
}
