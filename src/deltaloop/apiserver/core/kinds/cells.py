"""The words in which a kind says the cells of its table's rows, by the names of its columns.

A path is written with dots. Name and age, which most kinds have, go without saying.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.times import parse_time
from deltaloop.apiserver.core.kinds.human_duration import INVALID, human_duration
from deltaloop.apiserver.core.strategy import Cell
from deltaloop.schemas.json_values import at, integer, items, mapping, text, texts

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
UNSET: Final = "<unset>"
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def text_at(path: str, missing: str = "") -> Cell:
    """A text, or what is said where there is none, or an empty one."""
    way = path.split(".")
    return lambda obj: text(at(obj, *way)) or missing


def number_at(path: str) -> Cell:
    """A whole number; 0 where there is none."""
    way = path.split(".")
    return lambda obj: integer(at(obj, *way))


def count_at(path: str) -> Cell:
    """How many things there are in a list or a map."""
    way = path.split(".")
    return lambda obj: len(mapping(found := at(obj, *way)) or items(found))


def is_true_at(path: str) -> Cell:
    """Whether something is said to be true."""
    way = path.split(".")
    return lambda obj: at(obj, *way) is True


def joined_at(path: str, missing: str = "") -> Cell:
    """The texts of a list, with commas."""
    way = path.split(".")
    return lambda obj: ",".join(texts(at(obj, *way))) or missing


def labels_at(path: str) -> Cell:
    """A map of labels as ``a=b,c=d``."""
    way = path.split(".")
    return lambda obj: ",".join(f"{name}={label}" for name, label in sorted(mapping(at(obj, *way)).items())) or NONE


def selector_at(path: str, *, empty: str = NONE, wrong: str = "<error>") -> Cell:
    """A label selector as kubectl takes it on the command line."""
    way = path.split(".")
    return lambda obj: format_selector(at(obj, *way), empty=empty, wrong=wrong)


def template_cells(path: str = "spec.template") -> dict[str, Cell]:
    """The names and images of the containers in a pod template."""
    way = (*path.split("."), "spec", "containers")

    def of_containers(name: str) -> Cell:
        return lambda obj: ",".join(text(at(container, name)) for container in items(at(obj, *way)))

    return {"Containers": of_containers("name"), "Images": of_containers("image")}


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
