"""Checks that several kinds share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final

import msgspec

from deltaloop.apiserver.core.failures import FieldError, invalid_value, not_supported, required
from deltaloop.apiserver.core.json_values import at, integer, items, mapping, text
from deltaloop.apiserver.core.label_match import selects
from deltaloop.apiserver.core.metadata import label_errors

IMMUTABLE: Final = "field is immutable"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_LAST_PORT: Final = 65_535
_QUANTITY: Final = re.compile(r"(?P<number>[+-]?[0-9.]+)(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = "KMGTPE"
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def shown(value: object) -> str:
    """Write a value as messages have it."""
    return _encode(value).decode()


def one_of(value: object, field: str, known: Iterable[str]) -> Iterator[FieldError]:
    """Yield an error unless the value is one that is known."""
    known = tuple(known)
    if value not in known:
        yield not_supported(field, text(value), known)


def not_negative(fields: dict[str, Any], *names: str, path: str) -> Iterator[FieldError]:
    """Yield an error for each of these fields that is less than 0."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, int) and value < 0:
            yield invalid_value(f"{path}.{name}", str(value), NOT_NEGATIVE)


def port_errors(value: object, field: str) -> Iterator[FieldError]:
    """Yield an error unless the value is the number of a port."""
    number = integer(value)
    if not 0 < number <= _LAST_PORT:
        yield invalid_value(field, str(number), f"must be between 1 and {_LAST_PORT}, inclusive")


def amount(value: object) -> Decimal:
    """Return a quantity as a number; 0 for what is none."""
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return Decimal(0)
    number, suffix = Decimal(match["number"]), match["suffix"] or ""
    if suffix.endswith("i"):
        return number * Decimal(1024 ** (_BINARY.index(suffix[0]) + 1))
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return number.scaleb(int(suffix[1:]))
    return number.scaleb(_DECIMAL.get(suffix, 0))


def selector_errors(selector: object, field: str) -> Iterator[FieldError]:
    """Yield what is wrong with a label selector."""
    for place, expression in enumerate(items(at(selector, "matchExpressions"))):
        path, operator = f"{field}.matchExpressions[{place}]", text(at(expression, "operator"))
        if operator not in _OPERATORS:
            yield invalid_value(f"{path}.operator", shown(operator), "not a valid selector operator")
        elif operator in ("In", "NotIn") and not items(at(expression, "values")):
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    yield from label_errors(mapping(at(selector, "matchLabels")), f"{field}.matchLabels")


def template_errors(spec: dict[str, Any], field: str) -> Iterator[FieldError]:
    """Yield an error unless the labels of a pod template are what its owner selects."""
    labels = at(spec, "template", "metadata", "labels")
    selector = spec.get("selector")
    if not selector or not selects(mapping(selector), mapping(labels)):
        path = f"{field}.template.metadata.labels"
        yield invalid_value(path, shown(labels), "`selector` does not match template `labels`")
