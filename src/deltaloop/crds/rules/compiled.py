"""The rules of a schema, compiled once for the same bytes: a tree beside the schema's, with the ways to rules alone.

A new expression may use what the version before this one had, too, so that the cluster can be set back; one that is
stored already may use everything. What the first refuses is kept with the reason.

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
from deltaloop.cel.faults import InvalidExpressionError
from deltaloop.crds.cel_environments import NEW, STORED
from deltaloop.crds.rules.declarations import Declared, DeclaredTypes, declared, is_whole
from deltaloop.crds.rules.values import Reader, reader
from deltaloop.schemas.described_fields import described_field

_encode: Final = msgspec.json.Encoder().encode
RULES: Final = "x-kubernetes-validations"
_WORD: Final = RULES.encode()
# Nothing that rules see depends on a description. It is never found inside a text: quotation marks are escaped there.
_TEXT: Final = rb'"description":"[^"\\]*(?:\\.[^"\\]*)*"'
_DESCRIPTION: Final = re.compile(rb",%b|%b,?" % (_TEXT, _TEXT))
SELF: Final = "self"
OLD_SELF: Final = "oldSelf"


@final
@dataclass(frozen=True, slots=True)
class RuleExpression:
    """An expression of a rule, compiled if it can be.

    Attributes:
        source: The expression.
        compiled: The program; None if there is none.
        cost: What it may cost at the most, by estimate.
        fault: Why there is none.
        fault_if_new: Why there may be none if the expression is not stored already; "" if it may.
    """

    source: str
    compiled: cel.CompiledExpression | None = None
    cost: int = 0
    fault: str = ""
    fault_if_new: str = ""


@final
@dataclass(frozen=True, slots=True)
class CompiledRule:
    """One rule.

    Attributes:
        test: What must be true.
        message: What to say if it is not, as its author wrote it.
        own_message: What gives the message; None without such an expression.
        reason: The reason that its author chose, or "".
        path: What is wrong, below where the rule is; "" for that itself.
        needs_old: Whether it compares with what was there before.
        is_optional: Whether it is asked where nothing was there before, too.
        source: The rule as it is written.
    """

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
    """A schema that has rules of its own, as their expressions see it; equal parts of schemas have one.

    Attributes:
        source: The schema in JSON, without its descriptions.
        is_root: Whether it is that of a whole object.
        schema: The schema.
    """

    source: bytes
    is_root: bool
    schema: dict[str, object] = field(compare=False)

    @cached_property
    def declared(self) -> Declared | None:
        """What the schema declares; None if no type."""
        return declared(self.schema, is_root=self.is_root)

    @cached_property
    def rules(self) -> tuple[CompiledRule, ...]:
        """The rules, in their order."""
        return () if self.declared is None else _compiled(self.schema, DeclaredTypes(self.declared))

    @cached_property
    def compares(self) -> bool:
        """Whether one of the rules compares with what was there before."""
        return any(rule.needs_old for rule in self.rules)

    @cached_property
    def read(self) -> Reader:
        """What makes a value what expressions see."""
        return reader(self.schema, is_root=self.is_root)


@lru_cache(maxsize=1024)
def _the_one(scope: RuleScope) -> RuleScope:
    return scope


@final
class RuleNode:
    """A schema with rules, or one on the way to them.

    Attributes:
        schema: The schema.
        fields: Those of its fields in which there are rules.
        items: That of its items, if there are rules.
        others: That of its other fields, if there are rules.
    """

    def __init__(self, schema: dict[str, object], *, is_root: bool) -> None:
        """Find the ways to rules; they are compiled when they are first asked for."""
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
        """Its own rules; None if it has none."""
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
    """Tell whether a rule asks for what was there before as an optional value."""
    return rule.get("optionalOldSelf") is True


def may_have_rules(source: bytes) -> bool:
    """Tell quickly whether a schema in JSON may have rules; False is certain."""
    return _WORD in source


@lru_cache(maxsize=256)
def rules_of(source: bytes) -> RuleNode | None:
    """Return the rules of an object's schema in JSON; None if there are none."""
    return rules_below(mapping(msgspec.json.decode(source)), is_root=True) if may_have_rules(source) else None


def rules_below(schema: dict[str, object], *, is_root: bool | None = None) -> RuleNode | None:
    """Return the rules of a decoded schema; None if there are none.

    Args:
        schema: A structural schema.
        is_root: Whether it is that of a whole object; None lets the schema say so.
    """
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


# By the type that an expression has to have: what is said of one that is none, of one that has another type, and of one
# whose constants cannot be computed.
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
