r"""JSON paths of printer columns, which are kubectl templates without braces.

::

    .metadata.labels.app\.kubernetes\.io/name            escaped dots in a name
    .metadata.labels['app']                              quoted name
    .spec.hosts[0], [-1], [*], [], [1:], [0:4:2], [0,2]  items of a list, [] is the first
    .status.conditions[?(@.type=="Ready")].status        items for which a comparison is true or a path exists
    .spec.*, ..name                                      all values, and all descendants

Source: client-go util/jsonpath (parser.go, jsonpath.go), third_party/forked/golang/template.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.json_values import is_mapping, items, mapping
from deltaloop.schemas.work import Account, WorkLimitError, charge, limited

_Values: TypeAlias = list[object]
_Step: TypeAlias = Callable[[_Values], _Values]

_FIELD: Final = re.compile(r"((?:\\.|[^\\ \t\r\n.,\[\]$@{}])*)", re.DOTALL)
_WORD: Final = re.compile(r"\w[^ \t\r\n.,\[\]$@{}]*")
_NUMBER: Final = re.compile(r"[+-]?[\d.]*")
_BRACKETS: Final = re.compile(r"\[([^\]\n]*)\]")
_QUOTED_NAME: Final = re.compile(r"'([^']*)'")
_LONGEST: Final = 32
_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_QUOTED: Final = re.compile(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"")
_FILTER: Final = re.compile(r"\[\?\(((?:[^'\")\n]|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")*)\)\]")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_MOST_STEPS: Final = 20_000
_OPERATORS: Final[dict[str, Callable[..., bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_INT64: Final = 2**63
_MOST_VALUES: Final = 10_000


class InvalidJsonPathError(DeltaloopError, ValueError):
    """A path is not a valid JSON path."""


class _NoAnswerError(Exception):
    """A path makes an invalid access in this object, for example beyond the end of a list."""


@final
@dataclass(frozen=True, slots=True)
class JsonPath:
    text: str
    steps: tuple[_Step, ...]

    @classmethod
    def parse(cls, text: str) -> JsonPath:
        """Parse a path, or raise InvalidJsonPathError; text after a closing brace is ignored."""
        template = f"{{{text}}}"
        steps, position = _block(template, 1)
        while (position := template.find("{", position)) >= 0:
            _, position = _block(template, position + 1)
        return cls(text, tuple(steps))

    def find(self, value: object) -> _Values:
        """Return all matching values, or none if a part is missing or there are too many values."""
        try:
            with limited(Account(_MOST_STEPS)):
                return _walked(self.steps, [value])
        except (_NoAnswerError, WorkLimitError):
            return []


def _walked(steps: tuple[_Step, ...], values: _Values) -> _Values:
    for step in steps:
        charge(len(values))
        values = step(values)
        if len(values) > _MOST_VALUES:
            raise _NoAnswerError  # each step can double the values
    return values


def _wrong(text: str, position: int) -> InvalidJsonPathError:
    return InvalidJsonPathError(
        f"JSON path {text[1:-1]!r} cannot be read at position {position - 1}; write it as .spec.field, .list[0] or "
        '.status.conditions[?(@.type=="Ready")].status'
    )


def _block(text: str, position: int) -> tuple[list[_Step], int]:
    steps: list[_Step] = []
    while not text.startswith("}", position):
        if text.startswith((" ", "@", "$"), position):
            position += 1
            continue
        found = _step(text, position, after_all_below=bool(steps) and steps[-1] is _all_below)
        if found is None:
            raise _wrong(text, position)
        more, position = found
        steps += more
    return steps, position + 1


def _inside(text: str) -> tuple[_Step, ...]:
    return tuple(_block(f"{{{text}}}", 1)[0])


def _step(text: str, position: int, *, after_all_below: bool) -> tuple[list[_Step], int] | None:
    if text.startswith("[?", position):
        match = _FILTER.match(text, position)
        return ([_filter(match[1])], match.end()) if match else None
    if text.startswith("..", position):
        following = _WORD.match(text, position + 2)
        name = _FIELD.match(text, position + 2) if following else None
        if after_all_below:
            return None
        return ([_all_below, _field(name[1])], name.end()) if name else ([_all_below], position + 2)
    if text.startswith(".", position):
        match = _FIELD.match(text, position + 1)
        return ([_field(match[1])], match.end()) if match else None
    if match := _BRACKETS.match(text, position):
        return _bracketed(text, position, match[1]), match.end()
    if match := _QUOTED.match(text, position):
        return [_constant(re.sub(r"\\(.)", r"\1", match[1] or match[2] or ""), once=True)], match.end()
    if text[position : position + 1] in ("+", "-") or text[position : position + 1].isdigit():
        match = _NUMBER.match(text, position)
        return ([_constant(_number(text, position, match[0]))], match.end()) if match else None
    if match := _WORD.match(text, position):
        truth = {"true": True, "false": False}.get(match[0])
        return [_refused if truth is None else _constant(truth)], match.end()
    return None


def _number(text: str, position: int, written: str) -> int | float:
    try:
        return float(written) if "." in written else int(written)
    except ValueError:
        raise _wrong(text, position) from None


def _bracketed(text: str, position: int, inside: str) -> list[_Step]:
    parts = inside.split(",")
    if len(parts) > 1:
        return [_union([_inside(f"[{part.strip(' ')}]") for part in parts])]
    if name := _QUOTED_NAME.fullmatch(inside):
        return [*_inside(f".{name[1]}")]
    match = _SLICE.fullmatch(":" if inside == "*" else inside)
    if match is None:
        raise _wrong(text, position)
    first, end, step = (part and part.removeprefix(":") for part in match.groups())
    # Python limits the number of digits in int().
    bounds = [int(part[:_LONGEST]) if part and part != "-" else None for part in (first, end, step)]
    if "-" in (first, end, step) or any(bound is not None and abs(bound) >= _INT64 for bound in bounds):
        raise _wrong(text, position)
    return [_slice(bounds[0] or 0, bounds[1], bounds[2], only=end is None)]


def _field(written: str) -> _Step:
    if written == "*":
        return _every
    name = written.replace("\\", "")
    return lambda values: [fields[name] for value in values if name in (fields := mapping(value))]


def _every(values: _Values) -> _Values:
    return [inner for value in values for inner in (value.values() if is_mapping(value) else items(value))]


def _all_below(values: _Values) -> _Values:
    found: _Values = []
    charge(len(values))
    for value in values:
        if value and isinstance(value, str | dict | list):
            found += [value, *_all_below(_every([value]))]
            if len(found) > _MOST_VALUES:
                raise _NoAnswerError
    return found


def _constant(value: object, *, once: bool = False) -> _Step:
    return lambda values: [value] if once else [value] * len(values)


def _refused(_values: _Values) -> _Values:
    raise _NoAnswerError


def _union(parts: list[tuple[_Step, ...]]) -> _Step:
    return lambda values: [found for part in parts for found in _walked(part, values)]


def _slice(first: int, end: int | None, step: int | None, *, only: bool) -> _Step:
    """Return the step to a slice of a list. ``only`` selects its first item."""

    def chosen(value: object) -> _Values:
        listed = items(value)
        if listed is not value:
            raise _NoAnswerError
        size = len(listed)
        begin = first + size if first < 0 else first
        last = first + 1 if only else size if end is None else end
        if last < 0 or (last == 0 and only):
            last += size
        if begin == last:
            return []
        if not 0 <= begin < size or not begin < last <= size or (step is not None and step <= 0):
            raise _NoAnswerError
        return listed[begin : last : step or 1]

    return lambda values: [item for value in values if value is not None for item in chosen(value)]


def _filter(text: str) -> _Step:
    """Return the step to the items of lists for which a comparison is true or a path exists."""
    parts = _COMPARISON.fullmatch(text)
    left = _inside(parts[1] if parts else text)
    right = _inside(parts[3]) if parts else ()

    def holds(item: object) -> bool:
        found = _walked(left, [item])
        if parts is None or not found:
            return bool(found)
        others = _walked(right, [item])
        return bool(others) and _compared(found, parts[2], others)

    def step(values: _Values) -> _Values:
        if not all(isinstance(value, list) for value in values):
            raise _NoAnswerError
        return [item for value in values for item in items(value) if holds(item)]

    return step


def _compared(left: _Values, name: str, right: _Values) -> bool:
    (first, *more), (second, *others) = left, right
    kind, compare = type(first), _OPERATORS.get(name)
    if more or others or compare is None or kind is not type(second) or kind not in (bool, int, float, str):
        raise _NoAnswerError
    if kind is bool and name not in ("==", "!="):
        raise _NoAnswerError
    return compare(first, second)
