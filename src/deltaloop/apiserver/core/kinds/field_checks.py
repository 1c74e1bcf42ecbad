"""Checks for the rules of several kinds.

Source: Kubernetes pkg/apis/core/validation/validation.go; apimachinery pkg/apis/meta/v1/validation; Kubernetes
pkg/apis/core/v1/conversion.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from deltaloop.api.dns_names import label_key_problems
from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, string_map, text, texts
from deltaloop.apiserver.core.kinds.addresses import address_errors, network_errors
from deltaloop.apiserver.core.kinds.text_forms import FORMS
from deltaloop.apiserver.core.metadata.rules import (
    label_errors,
    label_name_errors,
    label_name_problems,
    label_value_problems,
    subdomain_errors,
)
from deltaloop.schemas.checking import IMMUTABLE, Check, Place
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, not_supported, required, shown


def agree_on_first(part: dict[str, object], one: str, several: str, *, key: str = "") -> None:
    """Synchronize an old single-value field with the first item of its newer list field; a differing old value wins.

    ``key`` is the item's field with the value, or empty if the items are the values.
    """
    alone, found = part.get(one), items(part.get(several))
    first = at(found[0], key) if found and key else found[0] if found else None
    if alone and alone != first:
        part[several] = [{key: alone} if key else alone]
    elif first:
        part[one] = first


NOT_NEGATIVE: Final = "must be greater than or equal to 0"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_LAST_PORT: Final = 65_535
_LONGEST_PORT_NAME: Final = 15
_PORT_NAME: Final = re.compile("[-a-z0-9]+")
_PERCENT: Final = re.compile("[0-9]+%")
_EVERYTHING: Final = 100
_ordered: Final = msgspec.json.Encoder().encode


def each(holder: object, name: str, path: str = "") -> Iterator[tuple[str, dict[str, object]]]:
    below = f"{path}.{name}" if path else name
    for place, item in enumerate(items(at(holder, name))):
        yield f"{below}[{place}]", mapping(item)


def immutable(before: object, after: object, *names: str, path: str = "") -> Iterator[SchemaError]:
    for name in names:
        if at(before, name) != at(after, name):
            yield invalid_value(f"{path}.{name}" if path else name, at(after, name), IMMUTABLE)


def one_of(value: object, field: str, known: Iterable[str]) -> Iterator[SchemaError]:
    known = tuple(known)
    if value not in known:
        yield not_supported(field, text(value), known)


def port_errors(value: object, field: str) -> Iterator[SchemaError]:
    number = integer(value)
    if not 0 < number <= _LAST_PORT:
        yield invalid_value(field, number, f"must be between 1 and {_LAST_PORT}, inclusive")


def port_name_errors(value: object, field: str) -> Iterator[SchemaError]:
    name = text(value)
    problems = (
        (len(name) > _LONGEST_PORT_NAME, f"must be no more than {_LONGEST_PORT_NAME} characters"),
        (
            not _PORT_NAME.fullmatch(name),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (not any("a" <= sign <= "z" for sign in name), "must contain at least one letter (a-z)"),
        ("--" in name, "must not contain consecutive hyphens"),
        (name.startswith("-") or name.endswith("-"), "must not begin or end with a hyphen"),
    )
    yield from (invalid_value(field, name, problem) for found, problem in problems if found)


def port_or_name_errors(value: object, field: str) -> Iterator[SchemaError]:
    return port_name_errors(value, field) if isinstance(value, str) else port_errors(value, field)


def share_errors(value: object, field: str) -> Iterator[SchemaError]:
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        text_ = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
            f"used for validation is '{_PERCENT.pattern}')"
        )
        yield invalid_value(field, value, text_)
    elif isinstance(value, int) and value < 0:
        yield invalid_value(field, value, NOT_NEGATIVE)


def is_none(share: object) -> bool:
    """Return whether a share of pods is zero; an invalid text counts as zero."""
    digits = text(share).removesuffix("%") if isinstance(share, str) else str(integer(share))
    return not digits.isdecimal() or int(digits[:9]) == 0


def most_percent_errors(value: object, field: str) -> Iterator[SchemaError]:
    if isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:9].rstrip("%")) > _EVERYTHING:
        yield invalid_value(field, value, "must not be greater than 100%")


def shown_selector(selector: object) -> str:
    """Format a label selector with its fields in Go's order."""
    if not is_mapping(selector):
        return "null"
    parts = [f'"matchLabels":{shown(at(selector, "matchLabels"))}'] if at(selector, "matchLabels") else []
    expressions = [
        _ordered(
            {name: at(expression, name) for name in ("key", "operator", "values") if at(expression, name)}
        ).decode()
        for expression in items(at(selector, "matchExpressions"))
    ]
    if expressions:
        parts.append(f'"matchExpressions":[{",".join(expressions)}]')
    return f"{{{','.join(parts)}}}"


def selector_errors(selector: object, field: str) -> Iterator[SchemaError]:
    yield from _expression_errors(at(selector, "matchExpressions"), f"{field}.matchExpressions")
    yield from label_errors(string_map(at(selector, "matchLabels")), f"{field}.matchLabels")


def _expression_errors(expressions: object, field: str) -> Iterator[SchemaError]:
    for place, expression in enumerate(items(expressions)):
        operator, values = text(at(expression, "operator")), items(at(expression, "values"))
        path = f"{field}[{place}]"
        if operator not in _OPERATORS:
            yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
        elif operator in ("In", "NotIn") and not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            text_ = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden_field(f"{path}.values", text_)
        key = text(at(expression, "key"))
        yield from (invalid_value(f"{path}.key", key, problem) for problem in label_key_problems(key))
        for number, value in enumerate(texts(values)):
            for problem in label_value_problems(value):
                yield invalid_value(f"{path}.values[{number}]", value, problem)


def _untrimmed_errors(place: Place) -> Iterator[SchemaError]:
    """Yield an error for whitespace around the image of a pod. Templates can contain it."""
    if at(place.whole, "kind") == "Pod" and place.text != place.text.strip():
        yield invalid_value(place.path, place.value, "must not have leading or trailing whitespace")


def _short_name_errors(value: str, field: str) -> Iterator[SchemaError]:
    yield from (invalid_value(field, value, problem) for problem in label_name_problems(value))


def _of_text(check: Callable[[str, str], Iterable[SchemaError]]) -> Check:
    return lambda place: check(place.text, place.path)


def _of_value(check: Callable[[object, str], Iterable[SchemaError]]) -> Check:
    return lambda place: check(place.value, place.path)


CHECKS: Final[Mapping[str, Check]] = {
    **FORMS,
    "addresses": lambda place: address_errors(texts(place.value), place.path),
    "label": _of_text(label_name_errors),
    "labels": lambda place: label_errors(string_map(place.value), place.path),
    "most_percent": _of_value(most_percent_errors),
    "network": _of_text(network_errors),
    "port_or_name": _of_value(port_or_name_errors),
    "selector_expressions": _of_value(_expression_errors),
    "share": _of_value(share_errors),
    "short_name": _of_text(_short_name_errors),
    "subdomain": _of_text(subdomain_errors),
    "trimmed": _untrimmed_errors,
}
