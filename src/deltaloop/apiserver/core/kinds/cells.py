"""Table cells of the built-in kinds, by column name.

The tables of the kinds describe most cells with a form, a path, and an optional text for missing values:

    spec.nodeName or <none>                 string
    value spec.minAvailable or N/A          any value as a string
    number status.replicas                  integer, 0 by default
    count webhooks                          number of items in a list or map
    true spec.suspend                       whether the value is true
    joined spec.cidrs                       strings of a list, separated by commas
    labels spec.nodeSelector                labels as ``a=b,c=d``
    selector spec.selector                  label selector in kubectl's syntax
    containers, images spec.template        names or images of the containers in a pod template
    age status.lastScheduleTime or <none>   time since a timestamp
    condition Dangling or ?                 status of a condition
    state Issued,Failed or Pending          first of these conditions that is true

Source: Kubernetes pkg/printers/internalversion/printers.go; apimachinery pkg/util/duration ``HumanDuration``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import at, integer, items, mapping, text, texts
from deltaloop.api.times import parse_time
from deltaloop.apiserver.core.strategy import Cell, TimedCell

UNKNOWN: Final = "<unknown>"

INVALID = "<invalid>"

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def human_duration(seconds: float) -> str:
    """Format a duration like ``3m5s`` or ``3y45d``, never rounded up."""
    whole = int(seconds)
    if whole < -1:
        return INVALID
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole, (_MINUTE, "m"), (1, "s"))
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, (_HOUR, "h"), (_MINUTE, "m"))
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, (_DAY, "d"), (_HOUR, "h"))
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, (_YEAR, "y"), (_DAY, "d"))
    return f"{whole // _YEAR}y"


def age(timestamp: object, now: float, *, missing: str = UNKNOWN) -> str:
    """Format the time since an RFC 3339 timestamp, or return ``missing``; ``now`` is in seconds since 1970."""
    written = text(timestamp)
    if not written:
        return missing
    try:
        return human_duration(now - parse_time(written).timestamp())
    except InvalidArgumentError:
        return INVALID


def _two(seconds: int, larger: tuple[int, str], smaller: tuple[int, str]) -> str:
    high, rest = divmod(seconds, larger[0])
    low = rest // smaller[0]
    return f"{high}{larger[1]}{low}{smaller[1]}" if low else f"{high}{larger[1]}"


NONE: Final = "<none>"
UNSET: Final = "<unset>"
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def declared_cell(words: str) -> TimedCell:
    """Return the cell function for a description, or raise KeyError for an unknown form."""
    said, _, missing = words.partition(" or ")
    form, _, place = said.rpartition(" ")
    if form in ("condition", "state"):
        return partial(_of_conditions, place.split(","), missing, says=form == "condition")
    return partial(_of_value, _FORMS[form], place.split("."), missing)


def _of_value(
    form: Callable[[object, str, float], object], way: list[str], missing: str, obj: Mapping[str, object], now: float
) -> object:
    return form(at(obj, *way), missing, now)


def _of_conditions(names: list[str], missing: str, obj: Mapping[str, object], _now: float, *, says: bool) -> str:
    if says:
        return condition(obj, names[0]) or missing
    return next((name for name in names if condition(obj, name) == "True"), missing)


def _number(value: object, missing: str, _now: float) -> object:
    return missing if missing and value is None else integer(value)


def _labels(value: object, _missing: str, _now: float) -> str:
    return ",".join(f"{name}={label}" for name, label in sorted(mapping(value).items())) or NONE


def _of_containers(name: str, template: object) -> str:
    return ",".join(text(at(container, name)) for container in items(at(template, "spec", "containers")))


_FORMS: Final[Mapping[str, Callable[[object, str, float], object]]] = {
    "": lambda value, missing, _: text(value) or missing,
    "age": lambda value, missing, now: age(value, now, missing=missing),
    "containers": lambda value, _missing, _: _of_containers("name", value),
    "count": lambda value, _missing, _: len(mapping(value) or items(value)),
    "images": lambda value, _missing, _: _of_containers("image", value),
    "joined": lambda value, missing, _: ",".join(texts(value)) or missing,
    "labels": _labels,
    "number": _number,
    "selector": lambda value, _missing, _: format_selector(value),
    "true": lambda value, _missing, _: value is True,
    "value": lambda value, missing, _: missing if value is None else str(value),
}


def marked_default(*annotations: str) -> Cell:
    """Return a cell with the object's name, marked as default if an annotation is "true"."""

    def cell(obj: Mapping[str, object]) -> str:
        found = mapping(at(obj, "metadata", "annotations"))
        mark = " (default)" if any(found.get(name) == "true" for name in annotations) else ""
        return text(at(obj, "metadata", "name")) + mark

    return cell


def since(start: object, end: object, now: float) -> str:
    """Format the time between two timestamps, or until now without an end; empty without a start."""
    if not text(start):
        return ""
    try:
        ended = parse_time(text(end)).timestamp() if text(end) else now
        return human_duration(ended - parse_time(text(start)).timestamp())
    except InvalidArgumentError:
        return INVALID


def condition(obj: Mapping[str, object], kind: str) -> str | None:
    conditions = items(at(obj, "status", "conditions"))
    return next((text(at(item, "status")) for item in conditions if at(item, "type") == kind), None)


def access_modes(modes: object) -> str:
    return ",".join(dict.fromkeys(_MODES[mode] for mode in texts(modes) if mode in _MODES))


def load_balancer_addresses(owner: Mapping[str, object]) -> list[str]:
    """Return the sorted addresses, or otherwise host names, of a load balancer."""
    ingress = items(at(owner, "status", "loadBalancer", "ingress"))
    return sorted({text(at(item, "ip")) or text(at(item, "hostname")) for item in ingress} - {""})


def first_three(values: list[str], *, empty: str = NONE) -> str:
    """Format the first three items of a list and the number of remaining items."""
    if not values:
        return empty
    return ",".join(values[:3]) + (f" + {len(values) - 3} more..." if len(values) > 3 else "")


def format_selector(selector: object, *, empty: str = NONE, wrong: str = "<error>") -> str:
    """Format a label selector with ``matchLabels`` and ``matchExpressions`` in kubectl's syntax."""
    terms = [(name, f"{name}={value}") for name, value in mapping(at(selector, "matchLabels")).items()]
    for expression in items(at(selector, "matchExpressions")):
        name, operator = text(at(expression, "key")), at(expression, "operator")
        values = ",".join(sorted(texts(at(expression, "values"))))
        if operator in ("In", "NotIn"):
            terms.append((name, f"{name} {'in' if operator == 'In' else 'notin'} ({values})"))
        elif operator in ("Exists", "DoesNotExist"):
            terms.append((name, name if operator == "Exists" else f"!{name}"))
        else:
            return wrong
    return ",".join(term for _, term in sorted(terms, key=lambda term: term[0])) or empty
