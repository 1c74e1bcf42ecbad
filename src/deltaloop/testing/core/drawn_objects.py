"""Random objects that match a schema, except for CEL rules, for property tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import items, mapping, text
from deltaloop.schemas.formats import fits
from deltaloop.schemas.patterns.matching import compile_pattern

_ORDINARY: Final = (
    "a", "sample", "Sample", "1", "1m", "1Gi", "v1", "A", "example.com", "example.com/sample", "example.com/v1",
    "https://example.com", "sample@example.com", "10.0.0.1", "10.0.0.0/16", "fd00::1", "fd00::/64", "00:00:5e:00:53:01",
    "2026-01-01", "2026-01-01T00:00:00Z", "c2FtcGxl", "00000000-0000-4000-8000-000000000000", "/", "/sample",
    "0 0 * * *", "oci://example.com/sample", "s3://sample", "1.0.0", "v1.0.0", "sample:1", "sha256:" + 64 * "0", "0",
)  # fmt: skip


def ordinary_texts(rules: Mapping[str, Any]) -> list[str]:
    """Return known texts that match the pattern, format and lengths of a schema."""
    shortest, longest = rules.get("minLength"), rules.get("maxLength")
    least = shortest if isinstance(shortest, int) else 1
    most = longest if isinstance(longest, int) else max(least, 253)
    pattern = compile_pattern(text(rules.get("pattern")))
    form = text(rules.get("format"))
    candidates = ("a" * least, *_ORDINARY, "https://example.com/" + "a" * least)
    return [each for each in candidates if least <= len(each) <= most and fits(form, each) and pattern.matches(each)]


def is_within(number: float, rules: Mapping[str, Any]) -> bool:
    lowest, highest, step = rules.get("minimum"), rules.get("maximum"), rules.get("multipleOf")
    above = not isinstance(lowest, int | float) or (
        number > lowest if rules.get("exclusiveMinimum") else number >= lowest
    )
    below = not isinstance(highest, int | float) or (
        number < highest if rules.get("exclusiveMaximum") else number <= highest
    )
    return above and below and not (isinstance(step, int) and step and number % step)


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
