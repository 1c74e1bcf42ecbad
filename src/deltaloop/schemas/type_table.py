"""Table of the built-in types, and its compilation to type trees and rules.

A struct has these entries: fields; atomic; always (fields that Go always writes); zeros (their values); defaults (of
key fields of a list); fill (defaults of the server); fill_zero (those that also replace a zero value); omit_zero
(fields that are omitted if they are "", 0 or false); off (fields of disabled features, which are dropped); numbers
(protobuf numbers of the fields in their order, where a nested message has its number, its name and the numbers of its
fields); rules and tags (the two sets of rules of ``checking``).

The type of a field is a word or an object::

    string boolean int32 int64 number bytes time micro_time quantity intstr schema    see ``types``
    any, atomic                       any value, merged by field or replaced as a whole
    #core.v1.PodSpec                  struct of the table
    {"list": T}                       atomic list; with "keys": merged by key; with "set": distinct values
    {"map": T}                        map with string keys; with "atomic": replaced as a whole
    {"type": T}                       T; "granular" or "atomic" overrides how it merges

"carrier" is the struct of the protobuf message if it differs from JSON. "merge" (a merge key, or "" for plain values)
and "replace" are rules of strategic merge patch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias, final

import msgspec

from deltaloop.schemas.checking import NO_TYPE, Check, FieldRule, RuledField, RuledType
from deltaloop.schemas.types import FREE, Completion, Form, TypeNode


class FieldShape(msgspec.Struct, frozen=True, rename={"item": "list", "value": "map", "of": "type", "unlike": "set"}):
    item: str | FieldShape | None = None
    value: str | FieldShape | None = None
    of: str | FieldShape | None = None
    keys: tuple[str, ...] = ()
    unlike: bool = False
    atomic: bool = False
    granular: bool = False
    merge: str | None = None
    replace: bool = False
    carrier: str = ""


class HoistedFields(msgspec.Struct, frozen=True, array_like=True):
    """Fields of a struct that form a nested protobuf message."""

    number: int
    name: str
    numbers: tuple[int | HoistedFields, ...]


FieldType: TypeAlias = str | FieldShape


class StructType(msgspec.Struct, frozen=True):
    fields: dict[str, FieldType]
    atomic: bool = False
    always: tuple[str, ...] = ()
    zeros: dict[str, object] = {}
    defaults: dict[str, object] = {}
    fill: dict[str, object] = {}
    fill_zero: tuple[str, ...] = ()
    omit_zero: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    numbers: tuple[int | HoistedFields, ...] = ()
    rules: dict[str, FieldRule] = {}
    tags: dict[str, FieldRule] = {}


def _dropping(off: tuple[str, ...], rule: Callable[..., object] | None) -> Callable[..., object] | None:
    if not off:
        return rule

    def drop(fields: dict[str, object]) -> None:
        for name in off:
            fields.pop(name, None)
        if rule is not None:
            rule(fields)

    return drop


def _scalar(form: Form, accepts: str = "") -> TypeNode:
    return TypeNode(form=form, merging="scalar", accepts=accepts, open=True)


_SCHEMA_STRUCT: Final = "apiextensions.v1.JSONSchemaProps"
_WORDS: Final = {
    "string": _scalar("string", "string"),
    "bytes": _scalar("bytes", "string"),
    "boolean": _scalar("boolean", "boolean"),
    "int32": _scalar("int32", "integer"),
    "int64": _scalar("int64", "integer"),
    "number": _scalar("number", "number"),
    "time": _scalar("time"),
    "micro_time": _scalar("micro_time"),
    "quantity": _scalar("quantity"),
    "intstr": _scalar("intstr"),
    "atomic": _scalar("any"),
    "any": FREE,
}


@final
class TypeTable:
    """Types of a table, each compiled once on first use; ``rules`` are defaults that depend on other fields."""

    def __init__(
        self,
        structs: Mapping[str, StructType],
        *,
        known: Mapping[str, TypeNode] | None = None,
        rules: Mapping[str, Callable[..., object]] | None = None,
    ) -> None:
        self._structs = structs
        self._known = dict(known or {})
        self._rules = rules or {}
        self._made: dict[tuple[str, bool], TypeNode] = {}

    def struct(self, name: str, *, granular: bool = False) -> TypeNode:
        """Return the type of a struct. ``granular`` merges it by field even if it is atomic elsewhere."""
        known = self._known.get(name)
        if known is not None:
            return known
        entry = self._structs[name]
        key = name, entry.atomic and not granular
        made = self._made.get(key)
        if made is not None:
            return made
        fields: dict[str, TypeNode] = {}
        completion = Completion(
            fill=tuple((field, value, field in entry.fill_zero) for field, value in entry.fill.items()),
            zeros=entry.zeros,
            omitted=tuple(field for field in entry.omit_zero if field in entry.fields),
            rule=_dropping(entry.off, self._rules.get(name)),
        )
        zero: dict[str, object] | None = None if key[1] else {}
        made = self._made[key] = TypeNode(
            form="object",
            name=name,
            fields=fields,
            completion=completion,
            merging="scalar" if key[1] else "map",
            accepts="map",
            merge_fields=fields,
            zero=zero,
        )
        # Store the type before its fields are compiled, because a struct can contain itself.
        fields.update((field, self._field(shape)) for field, shape in entry.fields.items())
        if zero is not None:
            zero.update((field, fields[field].zero) for field in entry.always)
        _note_below(completion, {field: node for field, node in fields.items() if node.name not in self._known})
        _number(made, entry.numbers, iter(fields))
        return made

    def _field(self, shape: FieldType) -> TypeNode:
        if isinstance(shape, str):
            return self._word(shape)
        if shape.carrier:
            uncarried = self._field(msgspec.structs.replace(shape, carrier=""))
            return msgspec.structs.replace(uncarried, carrier=self.struct(shape.carrier))
        if shape.item is not None:
            return self._list(shape, shape.item)
        if shape.value is not None:
            element = self._field(shape.value)
            return TypeNode(
                form="object",
                other=element,
                merging="scalar" if shape.atomic else "map",
                accepts="map",
                element=element,
                replaced=shape.replace,
            )
        return self._otherwise(shape, shape.of or "any")

    def _word(self, word: str) -> TypeNode:
        if word[0] == "#":
            return self.struct(word[1:])
        if word == "schema":
            struct = self.struct(_SCHEMA_STRUCT)
            return TypeNode(form="schema", fields=struct.fields, items=struct)
        return _WORDS[word]

    def _list(self, shape: FieldShape, item: FieldType) -> TypeNode:
        element = self._field(item)
        keyed = bool(shape.keys) and not shape.unlike
        return TypeNode(
            form="list",
            items=element,
            merging="set" if shape.unlike else "keyed" if keyed else "scalar",
            accepts="list",
            element=element,
            keys=shape.keys if keyed else (),
            key_defaults=self._structs[element.name].defaults if keyed and element.name in self._structs else {},
            patch_key=shape.merge,
        )

    def _otherwise(self, shape: FieldShape, of: FieldType) -> TypeNode:
        if shape.granular and isinstance(of, str):
            return self.struct(of[1:], granular=True)
        node = self._field(of)
        if shape.atomic:
            return msgspec.structs.replace(node, merging="scalar", merge_fields={}, element=None, zero=None)
        return msgspec.structs.replace(node, replaced=True) if shape.replace else node


def _note_below(completion: Completion, fields: Mapping[str, TypeNode]) -> None:
    """Record the fields of a struct that hold quantities, or structs with defaults."""
    for name, node in fields.items():
        held = node.items or node.other or node
        if held.form == "quantity":
            completion.quantities.append(name)
        elif has_completion(held):
            completion.below[name] = node


def _number(made: TypeNode, numbers: Iterable[int | HoistedFields], names: Iterator[str]) -> None:
    for each in numbers:
        if isinstance(each, int):
            name = next(names)
            made.numbers[each] = name, made.fields[name]
        else:
            hoisted = msgspec.structs.replace(made, name=each.name, numbers={})
            made.numbers[each.number] = "", hoisted
            _number(hoisted, each.numbers, names)


def has_completion(node: TypeNode) -> bool:
    found = node.completion
    if found is None:
        return False
    return bool(found.fill or found.zeros or found.omitted or found.rule or found.quantities or found.below)


def parse_types(entries: object) -> dict[str, StructType]:
    return msgspec.convert(entries, dict[str, StructType])


_NO_RULE: Final = FieldRule()
_ZEROS: Final[Mapping[str, object]] = {"string": "", "boolean": False, "int32": 0, "int64": 0}
Held = Literal["", "list", "map"]


@final
class RuleTable:
    """Rules of a table of types, compiled once per struct."""

    def __init__(self, structs: Mapping[str, StructType], checks: Mapping[str, Check]) -> None:
        self._structs = structs
        self._checks = checks
        self._made: dict[tuple[str, bool], RuledType] = {}

    def rules(self, name: str, *, tagged: bool) -> RuledType:
        """Return one set of rules of a struct, or raise KeyError for an unknown check."""
        key = name, tagged
        if key not in self._made and name in self._structs:
            self._made[key] = NO_TYPE  # a struct inside itself has no rules
            self._made[key] = self._compiled(name, self._structs[name], tagged=tagged)
        return self._made.get(key, NO_TYPE)

    def _compiled(self, name: str, struct: StructType, *, tagged: bool) -> RuledType:
        rules = struct.tags if tagged else struct.rules
        fields = tuple(
            self._ruled(struct, field, rules.get(field), tagged=tagged)
            for field in (*rules, *(field for field in struct.fields if field not in rules))
        )
        fields = tuple(field for field in fields if field.rule != _NO_RULE or field.below.fields)
        if not fields:
            return NO_TYPE
        has_fixed = any(field.rule.fixed or (field.below.has_fixed and not field.held_in) for field in fields)
        return RuledType(name, fields, has_fixed)

    def _ruled(self, struct: StructType, name: str, rule: FieldRule | None, *, tagged: bool) -> RuledField:
        shape = struct.fields.get(name, "any")
        held, held_in = _struct_in(shape)
        zero = _ZEROS.get(shape) if isinstance(shape, str) and _is_value(struct, name) else None
        rule = rule or _NO_RULE
        return RuledField(
            name=name,
            rule=rule,
            zero=zero,
            checks=tuple(self._checks[check] for check in rule.checks),
            below=self.rules(held, tagged=tagged) if held else NO_TYPE,
            held_in=held_in,
            may_miss=not rule.required and (rule.optional or zero is None),
        )


def _is_value(struct: StructType, name: str) -> bool:
    """Return whether a field is not a pointer in Go, so that it always has a value."""
    return name in struct.omit_zero or struct.zeros.get(name) is not None


def _struct_in(shape: FieldType) -> tuple[str, Held]:
    if isinstance(shape, str):
        return shape.removeprefix("#") if shape[0] == "#" else "", ""
    if shape.of is not None:
        return _struct_in(shape.of)
    held, _ = _struct_in(shape.item or shape.value or "any")
    return held, "list" if shape.item is not None else "map"


def named_checks(structs: Mapping[str, StructType]) -> Iterator[str]:
    for struct in structs.values():
        for rule in (*struct.rules.values(), *struct.tags.values()):
            yield from rule.checks
