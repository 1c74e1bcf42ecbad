"""A number against its schema: ranges of formats, and bounds.

Source: kube-openapi pkg/validation/validate/values.go, validator.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.go_numbers import Number, is_whole, shown_number
from deltaloop.schemas.types import Rules, TypeNode

_INT64: Final = 2**63
_BITS: Final = {"int32": 2**31, "int64": _INT64}
_FORMATS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}
_NO_RULES: Final = Rules()
_LARGEST_FLOAT32: Final = 3.4028235677973366e38  # rounds to infinity


def number_errors(node: TypeNode, value: Number, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a number, beside its type."""
    kind = node.types[0] if len(node.types) == 1 and node.types[0] in _FORMATS else ""
    rules = node.rules or _NO_RULES
    form = rules.format if rules.format in _FORMATS.get(kind, ()) else ""
    yield from _range_errors(value, kind, form, "Checked", path)
    for bound, prefix, check in (
        (rules.multiple_of, "MultipleOf", _multiple_errors),
        (rules.minimum, "Minimum boundary", _least_errors),
        (rules.maximum, "Maximum boundary", _most_errors),
    ):
        if bound is None:
            continue
        wrong = list(_range_errors(float(bound), kind, form, prefix, path))
        # A bound of the right type is cut to the type of the value; another one is held against it as a float.
        number, limit = (float(value), float(bound)) if wrong or isinstance(value, float) else (value, int(bound))
        yield from wrong
        yield from check(rules, number, limit, path)


def _range_errors(value: Number, kind: str, form: str, prefix: str, path: str) -> Iterator[FieldError]:
    if kind == "integer":
        limit = _BITS.get(form, _INT64)
        # A float is read as it would be written, which is not always its exact value.
        fits = (isinstance(value, int) or value.is_integer()) and -limit <= int(Decimal(repr(value))) < limit
    else:
        fits = form != "float" or abs(value) < _LARGEST_FLOAT32
    if not fits:
        shown = f"with format {form}" if form else "(default format)"
        yield invalid_value("<nil>", '""', f"{prefix} value must be of type {kind} {shown} in {path}")


def _wrong(path: str, value: Number, rule: str) -> FieldError:
    shown = shown_number(value) if isinstance(value, float) else str(value)
    return invalid_value(path or "<nil>", shown, f"{path} in body {rule}")


def _limit(limit: Number) -> str:
    return shown_number(limit) if isinstance(limit, float) else str(limit)


def _multiple_errors(rules: Rules, number: Number, factor: Number, path: str) -> Iterator[FieldError]:
    del rules
    if factor <= 0:
        words = f"factor MultipleOf declared for {path} must be positive: {_limit(factor)}"
        yield invalid_value(path or "<nil>", _limit(factor), words)
    elif isinstance(number, int):
        if number % int(factor):
            yield _wrong(path, number, f"should be a multiple of {_limit(factor)}")
    elif not is_whole(1 / factor * number if factor < 1 else number / factor):
        yield _wrong(path, number, f"should be a multiple of {_limit(factor)}")


def _least_errors(rules: Rules, number: Number, least: Number, path: str) -> Iterator[FieldError]:
    if rules.exclusive_minimum and number <= least:
        yield _wrong(path, number, f"should be greater than {_limit(least)}")
    elif number < least:
        yield _wrong(path, number, f"should be greater than or equal to {_limit(least)}")


def _most_errors(rules: Rules, number: Number, most: Number, path: str) -> Iterator[FieldError]:
    if rules.exclusive_maximum and number >= most:
        yield _wrong(path, number, f"should be less than {_limit(most)}")
    elif number > most:
        yield _wrong(path, number, f"should be less than or equal to {_limit(most)}")
