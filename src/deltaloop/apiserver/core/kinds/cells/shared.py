"""Parts that the cells of several built-in kinds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from deltaloop.api.errors import InvalidInputError
from deltaloop.api.times import parse_time
from deltaloop.apiserver.core.kinds.human_duration import INVALID, age, human_duration
from deltaloop.schemas.json_values import at, items, mapping, text, texts

Object: TypeAlias = Mapping[str, Any]
Cells: TypeAlias = Callable[[Object, float], dict[str, Any]]
"""From an object and the time to its cells by column; name and age, which most kinds have, go without saying."""

NONE: Final = "<none>"
UNSET: Final = "<unset>"
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def created(obj: Mapping[str, Any], now: float) -> str:
    """Write an object's age."""
    return age(at(obj, "metadata", "creationTimestamp"), now)


def since(start: object, end: object, now: float) -> str:
    """Write the time from one timestamp to another, or to now while there is no other; empty before the start."""
    if not text(start):
        return ""
    try:
        ended = parse_time(text(end)).timestamp() if text(end) else now
        return human_duration(ended - parse_time(text(start)).timestamp())
    except InvalidInputError:
        return INVALID


def template_cells(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Write the names and images of the containers in a pod template."""
    containers = items(at(obj, "spec", "template", "spec", "containers"))
    names = ",".join(text(at(item, "name")) for item in containers)
    return {"Containers": names, "Images": ",".join(text(at(item, "image")) for item in containers)}


def condition(obj: Mapping[str, Any], kind: str) -> str | None:
    """Return the status of a condition, or None if the object does not have it."""
    conditions = items(at(obj, "status", "conditions"))
    return next((text(at(item, "status")) for item in conditions if at(item, "type") == kind), None)


def access_modes(modes: object) -> str:
    """Write access modes by their initials, without repetition."""
    return ",".join(dict.fromkeys(_MODES[mode] for mode in texts(modes) if mode in _MODES))


def format_labels(labels: object) -> str:
    """Write a map of labels as ``a=b,c=d``."""
    found = mapping(labels)
    return ",".join(f"{name}={found[name]}" for name in sorted(found)) or NONE


def first_three(values: list[str], *, empty: str = NONE) -> str:
    """Write the first three of a list, and how many more there are."""
    if not values:
        return empty
    return ",".join(values[:3]) + (f" + {len(values) - 3} more..." if len(values) > 3 else "")


def marked_default(obj: Mapping[str, Any], *annotations: str) -> str:
    """Write an object's name, and that it is the default where an annotation says so."""
    found = mapping(at(obj, "metadata", "annotations"))
    mark = " (default)" if any(found.get(name) == "true" for name in annotations) else ""
    return text(at(obj, "metadata", "name")) + mark


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
