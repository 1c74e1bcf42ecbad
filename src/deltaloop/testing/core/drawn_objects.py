"""Random objects that match a schema, except for CEL rules, for property tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import items, mapping, text
from deltaloop.testing.core.ordinary_values import is_within, ordinary_texts

T = TypeVar("T")

Draw = Callable[[], float]

_MOST_ITEMS: Final = 3
_NAMES: Final = ("a", "b", "example.com/c")


def drawn_object(schema: Mapping[str, Any], api_version: str, kind: str, draw: Draw) -> dict[str, Any]:
    """Return a random object; raise ``InvalidArgumentError`` if no known text matches a required field."""
    fields = mapping(schema.get("properties"))
    required = items(schema.get("required"))
    made: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "metadata": _metadata(draw)}
    for name, rules in fields.items():
        if name in made or (name not in required and draw() < 0.2):
            continue
        value = _drawn(mapping(rules), name, draw, needed=name in required)
        if value is not _NOTHING:
            made[name] = value
    return made


_NOTHING: Final = object()  # no value is known for an optional field


def _metadata(draw: Draw) -> dict[str, Any]:
    made: dict[str, Any] = {"name": "a", "namespace": "default", "uid": "00000000-0000-4000-8000-000000000000"}
    for name in ("labels", "annotations"):
        if draw() < 0.3:
            made[name] = {"example.com/of": "others"}
    return made


def _chosen(choices: Sequence[T], draw: Draw) -> T:
    return choices[int(draw() * len(choices))]


def _drawn(rules: Mapping[str, Any], place: str, draw: Draw, *, needed: bool) -> Any:
    if rules.get("nullable") and draw() < 0.1:
        return None
    if "default" in rules and draw() < 0.2:
        return rules["default"]
    choices = [each for each in items(rules.get("enum")) if each is not None]
    if choices:
        return _chosen(choices, draw)
    if rules.get("x-kubernetes-int-or-string"):
        return _chosen([1, 0, *ordinary_texts(rules)[:3]], draw)
    match rules.get("type"):
        case "object":
            return _fields(rules, place, draw)
        case "array":
            return _list(rules, place, draw)
        case "boolean":
            return draw() < 0.5
        case "integer":
            return _number(rules, draw)
        case "number":
            number = _number(rules, draw)
            return number + 0.5 if draw() < 0.3 and is_within(number + 0.5, rules) else number
        case "string" if texts := ordinary_texts(rules):
            return _chosen(texts, draw)
        case _:
            pass
    if rules.get("x-kubernetes-preserve-unknown-fields"):
        return {"any": [1, {"thing": "a"}]}
    if needed:
        raise InvalidArgumentError(
            f"{place} is required, and its schema allows no generated value. Pass samples=[...]."
        )
    return _NOTHING


def _number(rules: Mapping[str, Any], draw: Draw) -> int:
    lowest, highest = rules.get("minimum"), rules.get("maximum")
    ends = [int(each) for each in (lowest, highest) if isinstance(each, int | float)]
    near = [number for end in (*ends, 0) for number in (end, end + 1, end - 1, end + int(draw() * 100))]
    within = [number for number in near if is_within(number, rules)]
    return _chosen(within or [0], draw)


def _fields(rules: Mapping[str, Any], place: str, draw: Draw) -> dict[str, Any]:
    required = items(rules.get("required"))
    made: dict[str, Any] = {}
    for name, below in mapping(rules.get("properties")).items():
        if name in required or draw() < 0.7:
            value = _drawn(mapping(below), f"{place}.{name}", draw, needed=name in required)
            if value is not _NOTHING:
                made[name] = value
    others = mapping(rules.get("additionalProperties"))
    if others:
        for name in _NAMES[: int(draw() * (len(_NAMES) + 1))]:
            value = _drawn(others, f"{place}[{name}]", draw, needed=False)
            if value is not _NOTHING:
                made[name] = value
    if not made and rules.get("x-kubernetes-preserve-unknown-fields"):
        made["any"] = "thing"
    return made


def _list(rules: Mapping[str, Any], place: str, draw: Draw) -> list[Any]:
    least, most = rules.get("minItems", 0), rules.get("maxItems", _MOST_ITEMS)
    size = min(int(most), int(least) + int(draw() * (_MOST_ITEMS + 1)))
    each = mapping(rules.get("items"))
    keys = [text(name) for name in items(rules.get("x-kubernetes-list-map-keys"))]
    found: list[Any] = []
    seen: list[Any] = []
    for number in range(size):
        value = _drawn(each, f"{place}[{number}]", draw, needed=False)
        if value is _NOTHING:
            break
        identity = [mapping(value).get(key) for key in keys] if keys else value
        if (keys or rules.get("x-kubernetes-list-type") == "set") and identity in seen:
            continue
        seen.append(identity)
        found.append(value)
    return found
