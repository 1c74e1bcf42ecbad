"""The rules of the table of types, and how those of one kind are compiled: one list for each struct that has any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, final

from deltaloop.schemas.checking import NO_TYPE, Check, FieldRule, RuledField, RuledType
from deltaloop.schemas.type_table import FieldType, StructType

_NO_RULE: Final = FieldRule()
_ZEROS: Final[Mapping[str, object]] = {"string": "", "boolean": False, "int32": 0, "int64": 0}
Held = Literal["", "list", "map"]


@final
class RuleTable:
    """The rules of a table of types; those of a struct are compiled once."""

    def __init__(self, structs: Mapping[str, StructType], checks: Mapping[str, Check]) -> None:
        """Keep the table, and what its rules call checks."""
        self._structs = structs
        self._checks = checks
        self._made: dict[tuple[str, bool], RuledType] = {}

    def rules(self, name: str, *, tagged: bool) -> RuledType:
        """Return the rules of a struct and of what is below it, of one of the two kinds.

        Raises:
            KeyError: If they name a check that there is not.
        """
        key = name, tagged
        if key not in self._made and name in self._structs:
            self._made[key] = NO_TYPE  # what holds itself has no rules
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
        return RuledField(
            name=name,
            rule=_NO_RULE if rule is None else rule,
            zero=_ZEROS.get(shape) if isinstance(shape, str) and _is_value(struct, name) else None,
            checks=tuple(self._checks[check] for check in rule.checks) if rule is not None else (),
            below=self.rules(held, tagged=tagged) if held else NO_TYPE,
            held_in=held_in,
        )


def _is_value(struct: StructType, name: str) -> bool:
    """Tell whether a field is no pointer in Go, so that it is never without a value there."""
    return name in struct.omit_zero or struct.zeros.get(name) is not None


def _struct_in(shape: FieldType) -> tuple[str, Held]:
    """Return the name of the struct that a field has or holds, and in what; "" without one."""
    if isinstance(shape, str):
        return shape.removeprefix("#") if shape[0] == "#" else "", ""
    if shape.of is not None:
        return _struct_in(shape.of)
    held, _ = _struct_in(shape.item or shape.value or "any")
    return held, "list" if shape.item is not None else "map"


def named_checks(structs: Mapping[str, StructType]) -> Iterator[str]:
    """Yield the names of the checks that the rules of a table have."""
    for struct in structs.values():
        for rule in (*struct.rules.values(), *struct.tags.values()):
            yield from rule.checks
