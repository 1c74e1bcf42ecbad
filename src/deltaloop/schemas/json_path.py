r"""The simple JSON paths of printer columns, scale subresources and selectable fields.

    .spec.replicas                                       fields
    .metadata.labels.app\.kubernetes\.io/name            a dot inside a name has a backslash before it
    .metadata.labels['app']                              a name in quotes
    .spec.hosts[0], .spec.hosts[-1], .spec.hosts[*]      items of a list
    .status.conditions[?(@.type=="Ready")].status        items whose field equals (or does not equal) a value

A path yields every value that it leads to, in order; a column shows the first one. What is missing yields nothing.

Source: client-go util/jsonpath; apiextensions-apiserver pkg/registry/customresource/tableconvertor.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

import msgspec

from deltaloop.errors import DeltaloopError
from deltaloop.schemas.json_values import is_mapping, items, mapping

_Step = Callable[[Any], list[Any]]

_FIELD: Final = re.compile(r"\.((?:\\.|[^.\[\]\\\s])+)")
_QUOTED: Final = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\")\]")
_INDEX: Final = re.compile(r"\[(-?\d+)\]")
_ALL: Final = re.compile(r"\[\*\]|\.\*")
_FILTER: Final = re.compile(
    r"""\[\?\(\s*@((?:\.[^.=!<>\[\]\s)]+)+)\s*(==|!=)\s*("[^"]*"|'[^']*'|[^\s"')]+)\s*\)\]""",
)


class InvalidJsonPathError(DeltaloopError, ValueError):
    """A path is no simple JSON path; the message has the position."""


@final
@dataclass(frozen=True, slots=True)
class JsonPath:
    """A parsed simple JSON path."""

    text: str
    steps: tuple[_Step, ...]

    @classmethod
    def parse(cls, text: str) -> JsonPath:
        """Parse a path; it may be wrapped in braces and start with ``$``.

        Raises:
            InvalidJsonPathError: If it is not a simple JSON path; the message has the position.
        """
        body = text.strip()
        if body.startswith("{") and body.endswith("}"):
            body = body[1:-1].strip()
        body = body.removeprefix("$")
        if not body.startswith((".", "[")):
            raise InvalidJsonPathError(f"JSON path {text!r} must start with a dot, such as .spec.replicas")
        steps: list[_Step] = []
        position = 0
        while position < len(body):
            step, position = _step(text, body, position)
            steps.append(step)
        return cls(text, tuple(steps))

    def find(self, value: object) -> list[Any]:
        """Return every value that the path leads to; none if any part is missing."""
        found: list[Any] = [value]
        for step in self.steps:
            found = [result for item in found for result in step(item)]
        return found

    def first(self, value: object) -> Any:
        """Return the first value that the path leads to, or None."""
        found = self.find(value)
        return found[0] if found else None


def _step(text: str, body: str, position: int) -> tuple[_Step, int]:
    if match := _ALL.match(body, position):
        return _every, match.end()
    if match := _QUOTED.match(body, position):
        return _field(match[1] if match[1] is not None else match[2]), match.end()
    if match := _INDEX.match(body, position):
        return _index(int(match[1])), match.end()
    if match := _FILTER.match(body, position):
        return _filter(tuple(match[1].split(".")[1:]), _literal(text, match[3]), negated=match[2] == "!="), match.end()
    if match := _FIELD.match(body, position):
        return _field(re.sub(r"\\(.)", r"\1", match[1])), match.end()
    raise InvalidJsonPathError(
        f"JSON path {text!r} cannot be read at position {position}; write it as .spec.field, .list[0] or "
        '.status.conditions[?(@.type=="Ready")].status'
    )


def _field(name: str) -> _Step:
    def step(value: Any) -> list[Any]:
        fields = mapping(value)
        return [fields[name]] if name in fields else []

    return step


def _index(position: int) -> _Step:
    def step(value: Any) -> list[Any]:
        found = items(value)
        return [found[position]] if -len(found) <= position < len(found) else []

    return step


def _every(value: Any) -> list[Any]:
    return list(value.values()) if is_mapping(value) else list(items(value))


def _filter(names: tuple[str, ...], wanted: Any, *, negated: bool) -> _Step:
    def chosen(item: Any) -> bool:
        for name in names:
            fields = mapping(item)
            if name not in fields:
                return False
            item = fields[name]
        return (item == wanted and isinstance(item, bool) is isinstance(wanted, bool)) is not negated

    return lambda value: [item for item in items(value) if chosen(item)]


def _literal(text: str, written: str) -> Any:
    if written[0] in "\"'":
        return written[1:-1]
    try:
        return msgspec.json.decode(written.encode())
    except msgspec.DecodeError:
        raise InvalidJsonPathError(f"JSON path {text!r} compares with {written!r}: quote it if it is text") from None
