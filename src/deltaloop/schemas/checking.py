"""Rules of built-in kinds: what their table says of fields beyond types, and the checks that no table can say.

An object is walked by its type. At each struct, the fields that something is said of come in the order in which it is
said, then those with rules below them; at each field, and then below it:

    required    there is something; an empty list is nothing, and so are "" and 0 where Go has no pointer
    enum        it is one of these texts, or all items of a list are
    min, max    a number is not less, and not more
    longest     a list has no more items, and a text no more signs
    each        the same of every item of a list of texts or numbers
    unique      no two items of a list have the same in this field
    checks      what code finds, by the name that a strategy gave it (``Strategy.checks``)
    fixed       an update leaves it as it was

A name that begins with a dot stands for the struct itself: of that there are checks, and unions, of whose fields one
is set.

There are two kinds of rules, in one form: those that the real server's code has, which are looked at first, and at
every write; and those that the published types are tagged with, which come after them, and pass over what an update
leaves as it was.

Source: Kubernetes pkg/apis/*/validation; apimachinery pkg/api/validate; KEP-5073.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, TypeAlias, final

import msgspec

from deltaloop.api.json_values import at, is_list, is_mapping, items, mapping, text
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
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def shown(value: object) -> str:
    """Write a value as messages have it."""
    return _encode(value).decode()


class FieldRule(msgspec.Struct, frozen=True, rename={"minimum": "min", "maximum": "max"}):
    """What is said of a field; see above.

    Attributes:
        required: Whether there has to be something, or the words for that there is nothing.
        optional: Whether "" and 0 are nothing, of which nothing is said.
        words: Of a number outside of its range, if not the usual ones; what one of a union is.
        fixed: Whether an update leaves it as it was, or the words for that it does not.
        union: Fields of the struct of which one is set, in the order in which they are looked at.
        new: Whether it, and what is below, is looked at in new objects only.
        aside: Whether what is below is only looked at by a check (``Place.errors_below``).
        called: Name of the field in the paths of what is below, if it has another one there; "." if it has none.
    """

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
    """A field of a struct that something is said of, or of what is below it; ``zero`` is what Go has without it."""

    name: str
    rule: FieldRule
    zero: object
    checks: tuple[Check, ...]
    below: RuledType
    held_in: Literal["", "list", "map"]


@final
class RuledType(msgspec.Struct, frozen=True, eq=False):
    """What is said of the fields of a struct, in order, and whether one of them, or one below, is fixed."""

    name: str
    fields: tuple[RuledField, ...]
    has_fixed: bool


NO_TYPE: Final = RuledType("", (), False)
"""A type of which nothing is said."""


@final
class Place:
    """A value of an object, and where it is.

    Attributes:
        value: The value; what Go has in its place if there is none.
        path: Where it is.
        name: Name of the field that it is, or is an item of.
        holder: The struct that it is in; None for the whole.
        type: Rules of its type, if it is a struct.
    """

    __slots__ = ("_known", "holder", "name", "path", "type", "value")

    def __init__(self, value: object, path: str, name: str, holder: Place | None, type_: RuledType = NO_TYPE) -> None:
        """Keep them."""
        self.value: object = value
        self.path: str = path
        self.name: str = name
        self.holder: Place | None = holder
        self.type: RuledType = type_
        self._known: dict[str, set[str]] = {}

    @property
    def text(self) -> str:
        """The value, of a text."""
        return text(self.value)

    @property
    def fields(self) -> dict[str, object]:
        """The value, of a struct."""
        return mapping(self.value)

    @property
    def whole(self) -> object:
        """The whole object."""
        return self.within().value

    def below(self, name: str) -> str:
        """Return where a field of it is."""
        return f"{self.path}.{name}" if self.path else name

    def beside(self, name: str) -> object:
        """Return another field of the struct that it is in."""
        return at(self.holder.value, name) if self.holder is not None else None

    def within(self, *types: str) -> Place:
        """Return the nearest struct of some types that it is in; the whole object if there is none."""
        found = self
        while found.holder is not None and found.type.name not in types:
            found = found.holder
        return found

    def is_first(self, what: str, value: str) -> bool:
        """Tell whether a value is noted here for the first time, and note it."""
        known = self._known.setdefault(what, set())
        if value in known:
            return False
        known.add(value)
        return True

    def is_noted(self, what: str, value: str) -> bool:
        """Tell whether a value was noted here."""
        return value in self._known.get(what, ())

    def errors_below(self, name: str, value: object, *, number: int | None = None) -> Iterator[SchemaError]:
        """Yield what would be wrong below a field if it, or its item of this number, had this value."""
        path = self.below(name) if number is None else f"{self.below(name)}[{number}]"
        for field in self.type.fields:
            if field.name == name:
                yield from _struct_errors(Place(value, path, name, self, field.below))


Check: TypeAlias = Callable[[Place], Iterable[SchemaError]]


@final
class ObjectRules:
    """What is said of the objects of one kind, compiled when it is first asked for."""

    __slots__ = ("_compile", "_compiled")

    def __init__(self, compile_: Callable[[], tuple[RuledType, RuledType]]) -> None:
        """Keep what compiles the rules of both kinds."""
        self._compile = compile_
        self._compiled: tuple[RuledType, RuledType] | None = None

    @property
    def types(self) -> tuple[RuledType, RuledType]:
        """The rules of both kinds."""
        if self._compiled is None:
            self._compiled = self._compile()
        return self._compiled

    def kept_errors(self, fields: dict[str, object], *, new: bool) -> Iterator[SchemaError]:
        """Yield what is wrong with an object by the rules of the first kind, but for its status."""
        return _struct_errors(Place(fields, "", "", None, self.types[0]), new=new)

    def fixed_errors(self, old: dict[str, object], new: dict[str, object]) -> Iterator[SchemaError]:
        """Yield an error for each field that an update changes and may not, by the rules of the first kind."""
        return _fixed_errors(self.types[0], old, new, "")

    def tagged_errors(self, fields: dict[str, object], old: dict[str, object] | None = None) -> Iterator[SchemaError]:
        """Yield what is wrong with an object, which may replace an old one, by the tags of its type."""
        place = Place(fields, "", "", None, self.types[1])
        return _struct_errors(place, new=True) if old is None else _changed_errors(place, old)


NO_RULES: Final = ObjectRules(lambda: (NO_TYPE, NO_TYPE))
"""Nothing is said of them."""


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
            yield from _field_errors(field, value, place)
            if field.below.fields and not field.rule.aside:
                for inner, _ in _below(field, value, place):
                    yield from _struct_errors(inner, new=new)


def _changed_errors(place: Place, old: object) -> Iterator[SchemaError]:
    """Yield what is wrong with what a change has changed."""
    fields = place.fields
    for field in place.type.fields:
        value, before = fields.get(field.name), at(old, field.name)
        if (is_mapping(old) and value == before) or (field.name == "status" and place.holder is None):
            continue
        yield from _field_errors(field, value, place)
        if field.rule.fixed and is_mapping(old):
            yield invalid_value(place.below(field.name), "null", IMMUTABLE)
            continue
        for inner, inner_old in _below(field, value, place, before) if field.below.fields else ():
            if inner_old is None or inner.value != inner_old:
                yield from _changed_errors(inner, inner_old)


def _fixed_errors(type_: RuledType, old: object, new: object, path: str) -> Iterator[SchemaError]:
    for field in type_.fields if type_.has_fixed else ():
        where = f"{path}.{field.name}" if path else field.name
        before, after, fixed = at(old, field.name), at(new, field.name), field.rule.fixed
        if fixed and before != after:
            yield invalid_value(where, shown(after), fixed if isinstance(fixed, str) else IMMUTABLE)
        elif not field.held_in:
            yield from _fixed_errors(field.below, before, after, where)


def _below(field: RuledField, value: object, place: Place, old: object = None) -> Iterator[tuple[Place, object]]:
    """Yield the structs that a field has or holds, and what they were."""
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
    """Return which fields of a union are set; only the first is looked into."""
    return [name for name in rule.union if is_mapping(place.fields.get(name))]


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
    several = _listed(value)
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


def _listed(value: object) -> list[object] | None:
    return value if is_list(value) else None


def _list_errors(rule: FieldRule, where: str, values: list[object]) -> Iterator[SchemaError]:
    if rule.each is not None:
        for number, value in enumerate(values):
            yield from _value_errors(rule.each, f"{where}[{number}]", value)
    if rule.unique:
        keys = [text(at(item, rule.unique)) for item in values]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                yield duplicate(f"{where}[{number}].{rule.unique}", shown(key))


def _range_errors(rule: FieldRule, value: int, where: str) -> Iterator[SchemaError]:
    least, most, words = rule.minimum, rule.maximum, rule.words
    if (least is None or value >= least) and (most is None or value <= most):
        return
    if not words and least is not None and most is not None:
        words = f"must be between {least} and {most}, inclusive"
    elif not words:
        words = f"must be greater than or equal to {least}" if most is None else f"must be less than or equal to {most}"
    yield invalid_value(where, str(value), words)
