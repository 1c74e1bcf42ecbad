"""Objects made from a schema: as small as it allows, with everything in them, or with one part in them.

Rules of CEL are not looked at, and of ``anyOf`` and its like only the first branch: what is made is meant to be valid,
and where it is not, two servers can still be compared by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from deltaloop.api.json_values import is_mapping, mapping
from deltaloop.api.json_values import items as list_of
from lab.corpus.schemas import BRANCHES, EMBEDDED, INT_OR_STRING, Kind, Path, Schema, child

_FORMATS: Final[Mapping[str, str]] = {
    "date-time": "2024-01-02T03:04:05Z",
    "datetime": "2024-01-02T03:04:05Z",
    "date": "2024-01-02",
    "byte": "aGVsbG8=",
    "duration": "10s",
    "email": "a@example.com",
    "hostname": "example.com",
    "ipv4": "10.0.0.1",
    "ipv6": "2001:db8::1",
    "cidr": "10.0.0.0/8",
    "mac": "00:00:5e:00:53:01",
    "uuid": "0b2c3d4e-1f2a-4b3c-8d4e-5f6a7b8c9d0e",
    "uuid3": "0b2c3d4e-1f2a-3b3c-8d4e-5f6a7b8c9d0e",
    "uuid4": "0b2c3d4e-1f2a-4b3c-8d4e-5f6a7b8c9d0e",
    "uuid5": "0b2c3d4e-1f2a-5b3c-8d4e-5f6a7b8c9d0e",
    "uri": "https://example.com/a",
    "hexcolor": "#ffffff",
    "rgbcolor": "rgb(1,2,3)",
}
# Tried in this order where there is a pattern.
_WORDS: Final = (
    "a", "abc", "A", "Abc", "1", "10", "10s", "1h0m0s", "1Gi", "100m", "50%", "true", "v1", "v1.2.3", "1.2.3", "a/b",
    "a.b", "a-b", "example.com", "example.com/a", "https://example.com", "http://example.com/a.git", "oci://example.com/a",
    "ssh://git@example.com/a", "/", "/a", "a=b", "a@example.com", "10.0.0.1", "10.0.0.0/8", "2024-01-02T03:04:05Z",
    "00:00", "Mon:00:00", "* * * * *", "sha256:" + "a" * 64, "arn:aws:iam::123456789012:role/a",
    "ami-0123456789abcdef0",
    "a" * 8, "a" * 16, "a" * 32, "0" * 12, "",
)  # fmt: skip


def smallest(schema: Schema, number: int = 0) -> Any:
    """Return a value that is as small as the schema allows; another number gives another one, where there is one."""
    return _made(schema, number, lambda _name, _inner: False, 0)


def fullest(schema: Schema, depth: int = 6) -> Any:
    """Return a value that has every property, down to a depth."""
    return _made(schema, 0, lambda _name, _inner: True, depth)


def with_part(schema: Schema, path: Path) -> Any:
    """Return a value that is as small as the schema allows and has the part at this path."""
    value = smallest(schema)
    return put_part(schema, value, path)


def put_part(schema: Schema, value: Any, path: Path) -> Any:
    """Add what is missing on the way to a part, and return the value."""
    if not path:
        return value
    inner = child(schema, path[0])
    if inner is None:
        return value
    step = path[0]
    if isinstance(step, int):
        items = list_of(value)
        if not items:
            items.append(smallest(inner))
        items[0] = put_part(inner, items[0], path[1:])
        return items
    fields = mapping(value)
    fields[step] = put_part(inner, fields[step] if fields.get(step) is not None else smallest(inner), path[1:])
    return fields


def object_of(kind: Kind, name: str, spec: Any) -> dict[str, Any]:
    """Make an object of a kind around what was made from its schema."""
    fields = {key: value for key, value in mapping(spec).items() if key != "metadata"}
    return {**fields, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}


def _made(schema: Schema, number: int, wanted: Callable[[str, Schema], bool], depth: int) -> Any:
    if "default" in schema and depth == 0:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][number % len(schema["enum"])]
    if schema.get(INT_OR_STRING):
        return 1 + number
    kind = schema.get("type")
    if kind == "object" or (kind is None and ("properties" in schema or "additionalProperties" in schema)):
        return _made_object(schema, number, wanted, depth)
    if kind == "array":
        items = mapping(schema.get("items"))
        least = max(int(schema.get("minItems", 0)), 1 if depth > 0 else 0)
        return [_made(items, number + at, wanted, max(depth - 1, 0)) for at in range(min(least, 50))]
    if kind == "string":
        return _made_string(schema, number)
    if kind in ("integer", "number"):
        return _made_number(schema, number)
    if kind == "boolean":
        return number % 2 == 0
    return {}


def _made_object(schema: Schema, number: int, wanted: Callable[[str, Schema], bool], depth: int) -> dict[str, Any]:
    if schema.get(EMBEDDED):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"embedded-{number}"}}
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    names = list(schema.get("required") or ())
    for branches in BRANCHES:
        for branch in (schema.get(branches) or ())[: None if branches == "allOf" else 1]:
            names += branch.get("required") or ()
    if depth > 0:
        names += [name for name, inner in properties.items() if wanted(name, inner)]
    names += [name for name in properties if name not in names][
        : max(0, int(schema.get("minProperties", 0)) - len(names))
    ]
    made = {
        name: _made(properties.get(name) or {}, number, wanted, max(depth - 1, 0))
        for name in dict.fromkeys(names)
        if name in properties
    }
    more = schema.get("additionalProperties")
    if is_mapping(more):
        least = max(int(schema.get("minProperties", 0)), 1 if depth > 0 else 0)
        for at in range(least - len(made)):
            made[f"key{at or ''}"] = _made(more, at, wanted, max(depth - 1, 0))
    return made


def _made_string(schema: Schema, number: int) -> str:
    least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 10**6))
    pattern = schema.get("pattern") or next(
        (branch["pattern"] for branches in BRANCHES for branch in schema.get(branches) or () if "pattern" in branch), ""
    )
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    words = (f"a{number}", *_WORDS) if number else _WORDS
    for word in words:
        fitting = word if len(word) >= least else word + "a" * (least - len(word))
        if len(fitting) <= most and _matches(pattern, fitting):
            return fitting
    return "a" * max(least, 1)


def _matches(pattern: str, text: str) -> bool:
    try:
        return not pattern or re.search(pattern, text) is not None
    except re.error:
        return True


def _made_number(schema: Schema, number: int) -> int | float:
    value: float = schema.get("minimum", 1)
    if schema.get("exclusiveMinimum") is True:
        value += 1
    value += number
    if "maximum" in schema:
        value = min(value, schema["maximum"])
    step = schema.get("multipleOf")
    if step:
        value = -(-value // step) * step
    return value
