"""What is in the cells of a kind's rows, by the names of its columns.

The table of the kinds says it for most: a form, a path with dots, and what there is where there is nothing:

    spec.nodeName or <none>                 a text
    value spec.minAvailable or N/A          anything, as a text
    number status.replicas                  a whole number, 0 where there is none
    count webhooks                          how many things there are in a list or a map
    true spec.suspend                       whether it is true
    joined spec.cidrs                       the texts of a list, with commas
    labels spec.nodeSelector                a map of labels as ``a=b,c=d``
    selector spec.selector                  a label selector as kubectl takes it on the command line
    containers, images spec.template        of the containers in a pod template
    age status.lastScheduleTime or <none>   how long ago it was
    condition Dangling or ?                 the status of a condition
    state Issued,Failed or Pending          the first of these conditions that is true

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import at, integer, items, mapping, text, texts
from deltaloop.api.times import parse_time
from deltaloop.apiserver.core.kinds.human_duration import INVALID, age, human_duration
from deltaloop.apiserver.core.strategy import Cell, TimedCell

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
UNSET: Final = "<unset>"
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def declared_cell(words: str) -> TimedCell:
    """Return what computes a cell that is said in the words above.

    Raises:
        KeyError: If there is no such form.
    """
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
    """An object's name, and that it is the default where an annotation says so."""

    def cell(obj: Mapping[str, object]) -> str:
        found = mapping(at(obj, "metadata", "annotations"))
        mark = " (default)" if any(found.get(name) == "true" for name in annotations) else ""
        return text(at(obj, "metadata", "name")) + mark

    return cell


def since(start: object, end: object, now: float) -> str:
    """Write the time from one timestamp to another, or to now while there is no other; empty before the start."""
    if not text(start):
        return ""
    try:
        ended = parse_time(text(end)).timestamp() if text(end) else now
        return human_duration(ended - parse_time(text(start)).timestamp())
    except InvalidArgumentError:
        return INVALID


def condition(obj: Mapping[str, object], kind: str) -> str | None:
    """Return the status of a condition, or None if the object does not have it."""
    conditions = items(at(obj, "status", "conditions"))
    return next((text(at(item, "status")) for item in conditions if at(item, "type") == kind), None)


def access_modes(modes: object) -> str:
    """Write access modes by their initials, without repetition."""
    return ",".join(dict.fromkeys(_MODES[mode] for mode in texts(modes) if mode in _MODES))


def load_balancer_addresses(owner: Mapping[str, object]) -> list[str]:
    """Return the addresses of a load balancer, or names of hosts where there is none, in order."""
    ingress = items(at(owner, "status", "loadBalancer", "ingress"))
    return sorted({text(at(item, "ip")) or text(at(item, "hostname")) for item in ingress} - {""})


def first_three(values: list[str], *, empty: str = NONE) -> str:
    """Write the first three of a list, and how many more there are."""
    if not values:
        return empty
    return ",".join(values[:3]) + (f" + {len(values) - 3} more..." if len(values) > 3 else "")


def format_selector(selector: object, *, empty: str = NONE, wrong: str = "<error>") -> str:
    """Write a label selector with ``matchLabels`` and ``matchExpressions`` as kubectl takes it on the command line."""
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
