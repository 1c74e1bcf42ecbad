"""Compile the rules of a schema to a tree that contains only the paths to rules, with a cache.

Source: apiextensions-apiserver pkg/apiserver/schema/cel (``NewValidator``, ``Compile``); apiserver
pkg/cel/environment/environment.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, final

import msgspec

from deltaloop import cel
from deltaloop.api.json_values import is_mapping, items, mapping, text
from deltaloop.api.kubernetes_version import MINOR
from deltaloop.cel import Environment
from deltaloop.cel.errors import InvalidExpressionError
from deltaloop.cel.kubernetes import kubernetes_environment
from deltaloop.crds.rules.declarations import Declared, DeclaredTypes, declared, is_whole
from deltaloop.crds.rules.values import Reader, reader
from deltaloop.schemas.described_fields import described_field

_MAJOR, _MINOR = (int(part) for part in MINOR.split("."))
STORED: Final[Environment] = kubernetes_environment()
NEW: Final[Environment] = kubernetes_environment((_MAJOR, _MINOR - 1))


_encode: Final = msgspec.json.Encoder().encode
RULES: Final = "x-kubernetes-validations"
_WORD: Final = RULES.encode()
# Rules do not depend on descriptions. The pattern never matches inside a string, because quotes are escaped there.
_TEXT: Final = rb'"description":"[^"\\]*(?:\\.[^"\\]*)*"'
_DESCRIPTION: Final = re.compile(rb",%b|%b,?" % (_TEXT, _TEXT))
SELF: Final = "self"
OLD_SELF: Final = "oldSelf"


@final
@dataclass(frozen=True, slots=True)
class RuleExpression:
    """Expression of a rule."""

    source: str
    compiled: cel.CompiledExpression | None = None
    cost: int = 0
    fault: str = ""
    fault_if_new: str = ""


@final
@dataclass(frozen=True, slots=True)
class CompiledRule:
    """Compiled rule; ``own_message`` can be None, and the path of the invalid field ""."""

    test: RuleExpression
    message: str
    own_message: RuleExpression | None
    reason: str
    path: str
    needs_old: bool
    is_optional: bool
    source: dict[str, object]


@final
@dataclass(frozen=True)
class RuleScope:
    """Schema with its own rules. Equal schemas share one scope."""

    source: bytes
    is_root: bool
    schema: dict[str, object] = field(compare=False)

    @cached_property
    def declared(self) -> Declared | None:
        return declared(self.schema, is_root=self.is_root)

    @cached_property
    def rules(self) -> tuple[CompiledRule, ...]:
        return () if self.declared is None else _compiled(self.schema, DeclaredTypes(self.declared))

    @cached_property
    def compares(self) -> bool:
        return any(rule.needs_old for rule in self.rules)

    @cached_property
    def read(self) -> Reader:
        return reader(self.schema, is_root=self.is_root)


@lru_cache(maxsize=1024)
def _the_one(scope: RuleScope) -> RuleScope:
    return scope


@final
class RuleNode:
    """Schema that has rules at any depth. Its attributes are the parts that have rules."""

    def __init__(self, schema: dict[str, object], *, is_root: bool) -> None:
        """Find the paths to rules, which are compiled on first use."""
        self.schema = schema
        self.fields: dict[str, RuleNode] = {}
        for name, child in mapping(schema.get("properties")).items():
            if (below := rules_below(mapping(child))) is not None:
                self.fields[name] = below
        self.items: RuleNode | None = rules_below(mapping(schema.get("items")))
        self.others: RuleNode | None = rules_below(mapping(schema.get("additionalProperties")))
        self._is_root = is_root

    @cached_property
    def scope(self) -> RuleScope | None:
        if not self.schema.get(RULES):
            return None
        source = _DESCRIPTION.sub(b"", _encode(self.schema))
        return _the_one(RuleScope(source, self._is_root, self.schema))


def _compiled(schema: dict[str, object], types: DeclaredTypes) -> tuple[CompiledRule, ...]:
    given = [mapping(rule) for rule in items(schema.get(RULES))]
    environments = {
        optional: [each.with_variables({SELF: types.scope, OLD_SELF: old}, types) for each in (NEW, STORED)]
        for optional, old in ((False, types.scope), (True, cel.optional_of(types.scope)))
        if any(at_optional(rule) is optional for rule in given)
    }
    return tuple(_rule(schema, rule, environments[at_optional(rule)], types) for rule in given)


def at_optional(rule: dict[str, object]) -> bool:
    return rule.get("optionalOldSelf") is True


def may_have_rules(source: bytes) -> bool:
    """Return quickly whether a schema may have rules. False is certain."""
    return _WORD in source


@lru_cache(maxsize=256)
def rules_of(source: bytes) -> RuleNode | None:
    """Return the rules of an object's schema in JSON, or None."""
    return rules_below(mapping(msgspec.json.decode(source)), is_root=True) if may_have_rules(source) else None


def rules_below(schema: dict[str, object], *, is_root: bool | None = None) -> RuleNode | None:
    """Return the rules of a decoded schema, or None. ``is_root`` None reads the schema to find out."""
    if not schema:
        return None
    node = RuleNode(schema, is_root=is_whole(schema) if is_root is None else is_root)
    return node if schema.get(RULES) or node.fields or node.items or node.others else None


def parts_of(schema: dict[str, object]) -> list[dict[str, object]]:
    """Return the schemas of a schema's fields and items."""
    below = [*mapping(schema.get("properties")).values(), schema.get("items"), schema.get("additionalProperties")]
    return [child for child in below if is_mapping(child)]


def _rule(
    schema: dict[str, object], rule: dict[str, object], environments: list[cel.Environment], types: DeclaredTypes
) -> CompiledRule:
    test = _program(text(rule.get("rule")), environments, types, cel.BOOL)
    words = text(rule.get("messageExpression"))
    path = text(rule.get("fieldPath"))
    compiled = test.compiled
    return CompiledRule(
        test=test,
        message=text(rule.get("message")),
        own_message=_program(words, environments, types, cel.STRING) if words and compiled is not None else None,
        reason=text(rule.get("reason")),
        path=described_field(path, schema).shown if path else "",
        needs_old=compiled is not None and OLD_SELF in compiled.variables,
        is_optional=at_optional(rule),
        source=rule,
    )


# By required type: the messages for a syntax error, for a wrong type, and for constants that cannot be computed.
_FAULTS: Final = {
    cel.BOOL: ("compilation failed: ", "cel expression must evaluate to a bool", "program instantiation failed: "),
    cel.STRING: (
        "messageExpression compilation failed: ",
        "messageExpression must evaluate to a string",
        "messageExpression instantiation failed: ",
    ),
}


def _program(
    source: str, environments: list[cel.Environment], types: DeclaredTypes, wanted: cel.Type
) -> RuleExpression:
    if not source.strip():
        return RuleExpression(source)
    head, other, of_constants = _FAULTS[wanted]
    fault = ""
    for environment in environments:
        try:
            compiled = environment.compile(source)
        except InvalidExpressionError as error:
            fault = fault or (f"{of_constants}{error.faults[0].message}" if error.checked else f"{head}{error}")
            continue
        if compiled.type != wanted:
            return RuleExpression(source, fault=other)
        cost = compiled.estimate_cost(types.size).most
        return RuleExpression(source, compiled, cost, fault_if_new=fault)
    return RuleExpression(source, fault=fault)
