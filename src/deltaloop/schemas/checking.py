"""Rules of built-in kinds: the rules in the table of types, and named checks in code.

In each struct, fields with rules come first, in the order of the table. Their rules apply in this order: required (an
empty list is absent, and so are "" and 0 where Go has no pointer), enum, min and max, longest, each, unique, checks and
fixed.

The rules of the real server's code apply first, at every write. The rules in the tags of the published types apply
next, and skip values that an update does not change.

Source: Kubernetes pkg/apis/*/validation; apimachinery pkg/api/validate; KEP-5073.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias, final

import msgspec

from deltaloop.api.json_values import at, is_list, is_mapping, items, mapping, text, type_of
from deltaloop.schemas.field_errors import (
    SchemaError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
    too_many,
)

IMMUTABLE: Final = "field is immutable"


class FieldRule(msgspec.Struct, frozen=True, rename={"minimum": "min", "maximum": "max"}):
    """Rules of a field."""

    required: bool | str = False
    optional: bool = False
    enum: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    words: str = ""
    longest: int | None = None
    each: FieldRule | None = None
    unique: str = ""
    checks: tuple[str, ...] = ()
    fixed: bool | str = False
    union: tuple[str, ...] = ()
    new: bool = False
    aside: bool = False
    called: str = ""


@final
class RuledField(msgspec.Struct, frozen=True, eq=False):
    """Field of a struct that has rules, or rules below it. ``zero`` is its zero value in Go.

    ``may_miss`` means that no rule applies to a missing value.
    """

    name: str
    rule: FieldRule
    zero: object
    checks: tuple[Check, ...]
    below: RuledType
    held_in: Literal["", "list", "map"]
    may_miss: bool


@final
class RuledType(msgspec.Struct, frozen=True, eq=False):
    """Rules of the fields of a struct in order, and whether a field at any depth is fixed."""

    name: str
    fields: tuple[RuledField, ...]
    has_fixed: bool


NO_TYPE: Final = RuledType("", (), False)


@final
class Place:
    """Value of an object and its path. An absent value is Go's zero value."""

    __slots__ = ("_known", "holder", "name", "path", "type", "value")

    def __init__(self, value: object, path: str, name: str, holder: Place | None, type_: RuledType = NO_TYPE) -> None:
        self.value: object = value
        self.path: str = path
        self.name: str = name
        self.holder: Place | None = holder
        self.type: RuledType = type_
        self._known: dict[str, set[str]] = {}

    @property
    def text(self) -> str:
        return text(self.value)

    @property
    def fields(self) -> dict[str, object]:
        value: Any = self.value
        return value if type_of(value) is dict else {}

    @property
    def whole(self) -> object:
        return self.within().value

    def below(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def beside(self, name: str) -> object:
        return at(self.holder.value, name) if self.holder is not None else None

    def within(self, *types: str) -> Place:
        """Return the nearest enclosing struct of these types, or the whole object."""
        found = self
        while found.holder is not None and found.type.name not in types:
            found = found.holder
        return found

    def is_first(self, what: str, value: str) -> bool:
        """Record a value here. Return whether it was new."""
        known = self._known.setdefault(what, set())
        if value in known:
            return False
        known.add(value)
        return True

    def is_noted(self, what: str, value: str) -> bool:
        return value in self._known.get(what, ())

    def errors_below(self, name: str, value: object, *, number: int | None = None) -> Iterator[SchemaError]:
        """Yield the errors below a field, or its item with this number, as if it had this value."""
        path = self.below(name) if number is None else f"{self.below(name)}[{number}]"
        for field in self.type.fields:
            if field.name == name:
                yield from _struct_errors(Place(value, path, name, self, field.below))


Check: TypeAlias = Callable[[Place], Iterable[SchemaError]]


@final
class ObjectRules:
    __slots__ = ("_compile", "_compiled")

    def __init__(self, compile_: Callable[[], tuple[RuledType, RuledType]]) -> None:
        self._compile = compile_
        self._compiled: tuple[RuledType, RuledType] | None = None

    @property
    def types(self) -> tuple[RuledType, RuledType]:
        """Rules of the server's code, and rules of the tags."""
        if self._compiled is None:
            self._compiled = self._compile()
        return self._compiled

    def kept_errors(self, fields: dict[str, object], *, new: bool) -> Iterator[SchemaError]:
        """Yield the errors of an object by the rules of the server's code, except for its status."""
        return _struct_errors(Place(fields, "", "", None, self.types[0]), new=new)

    def fixed_errors(self, old: dict[str, object], new: dict[str, object]) -> Iterator[SchemaError]:
        return _fixed_errors(self.types[0], old, new, "")

    def tagged_errors(self, fields: dict[str, object], old: dict[str, object] | None = None) -> Iterator[SchemaError]:
        """Yield the errors of an object by the tags of its type. If ``old`` is given, unchanged values are skipped."""
        place = Place(fields, "", "", None, self.types[1])
        return _struct_errors(place, new=True) if old is None else _changed_errors(place, old)


NO_RULES: Final = ObjectRules(lambda: (NO_TYPE, NO_TYPE))


def _struct_errors(place: Place, *, new: bool = True) -> Iterator[SchemaError]:
    fields, passed = mapping(place.value), frozenset[str]()
    for field in place.type.fields:
        if field.name in passed:
            continue
        if field.name[0] == ".":
            yield from _union_errors(field.rule, place)
            passed |= {*_members(field.rule, place)[1:]}
            for check in field.checks:
                yield from check(place)
        elif (new or not field.rule.new) and not (field.name == "status" and place.holder is None):
            value = fields.get(field.name)
            if value is None and field.may_miss:
                continue
            yield from _field_errors(field, value, place)
            if field.below.fields and not field.rule.aside:
                for inner, _ in _below(field, value, place):
                    yield from _struct_errors(inner, new=new)


def _changed_errors(place: Place, old: object) -> Iterator[SchemaError]:
    fields = place.fields
    for field in place.type.fields:
        value, before = fields.get(field.name), at(old, field.name)
        if (is_mapping(old) and value == before) or (field.name == "status" and place.holder is None):
            continue
        yield from _field_errors(field, value, place)
        if field.rule.fixed and is_mapping(old):
            yield invalid_value(place.below(field.name), None, IMMUTABLE)
            continue
        for inner, inner_old in _below(field, value, place, before) if field.below.fields else ():
            if inner_old is None or inner.value != inner_old:
                yield from _changed_errors(inner, inner_old)


def _fixed_errors(type_: RuledType, old: object, new: object, path: str) -> Iterator[SchemaError]:
    for field in type_.fields if type_.has_fixed else ():
        where = f"{path}.{field.name}" if path else field.name
        before, after, fixed = at(old, field.name), at(new, field.name), field.rule.fixed
        if fixed and before != after:
            yield invalid_value(where, after, fixed if isinstance(fixed, str) else IMMUTABLE)
        elif not field.held_in:
            yield from _fixed_errors(field.below, before, after, where)


def _below(field: RuledField, value: object, place: Place, old: object = None) -> Iterator[tuple[Place, object]]:
    name, called, type_ = field.name, field.rule.called, field.below
    where = place.path if called == "." else place.below(called or name)
    if field.held_in == "list":
        known = items(old)
        for number, item in enumerate(items(value)):
            path = where if called == "." else f"{where}[{number}]"
            yield Place(item, path, name, place, type_), item if item in known else None
    elif field.held_in == "map":
        for key, item in mapping(value).items():
            yield Place(item, f"{where}[{key}]", name, place, type_), at(old, key)
    elif is_mapping(value):
        yield Place(value, where, name, place, type_), old


def _members(rule: FieldRule, place: Place) -> list[str]:
    """Return the fields of a union that are set. Only the first is checked further."""
    fields = place.fields
    return [name for name in rule.union if name in fields and is_mapping(fields[name])]


def _union_errors(rule: FieldRule, place: Place) -> Iterator[SchemaError]:
    found = _members(rule, place)
    if rule.required and not found:
        yield required(place.path, str(rule.required))
    for name in found[1:]:
        yield forbidden_field(place.below(name), f"may not specify more than 1 {rule.words}")


def _field_errors(field: RuledField, value: object, holder: Place) -> Iterator[SchemaError]:
    rule = field.rule
    value = field.zero if value is None else value
    nothing = value is None or value == [] or (value == field.zero and value is not False)
    if rule.required and (nothing or (value == {} and field.held_in)):
        yield required(holder.below(field.name), "" if rule.required is True else str(rule.required))
    elif value is not None and not (rule.optional and value in ("", 0, field.zero)):
        path = holder.below(field.name)
        yield from _value_errors(rule, path, value)
        if field.checks:
            place = Place(value, path, field.name, holder)
            for check in field.checks:
                yield from check(place)


def _value_errors(rule: FieldRule, where: str, value: object) -> Iterator[SchemaError]:
    several = value if is_list(value) else None
    if rule.enum:
        for one in [value] if several is None else several:
            if one not in rule.enum:
                yield not_supported(where, text(one), rule.enum)
    if isinstance(value, int) and not isinstance(value, bool):
        yield from _range_errors(rule, value, where)
    if rule.longest is not None and several is not None and len(several) > rule.longest:
        yield too_many(where, len(several), rule.longest)
    elif rule.longest is not None and isinstance(value, str) and len(value) > rule.longest:
        yield too_long(where, rule.longest, "character")
    if several is not None:
        yield from _list_errors(rule, where, several)


def _list_errors(rule: FieldRule, where: str, values: list[object]) -> Iterator[SchemaError]:
    if rule.each is not None:
        for number, value in enumerate(values):
            yield from _value_errors(rule.each, f"{where}[{number}]", value)
    if rule.unique:
        keys = [text(at(item, rule.unique)) for item in values]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                yield duplicate(f"{where}[{number}].{rule.unique}", key)


def _range_errors(rule: FieldRule, value: int, where: str) -> Iterator[SchemaError]:
    least, most, words = rule.minimum, rule.maximum, rule.words
    if (least is None or value >= least) and (most is None or value <= most):
        return
    if not words and least is not None and most is not None:
        words = f"must be between {least} and {most}, inclusive"
    elif not words:
        words = f"must be greater than or equal to {least}" if most is None else f"must be less than or equal to {most}"
    yield invalid_value(where, value, words)
