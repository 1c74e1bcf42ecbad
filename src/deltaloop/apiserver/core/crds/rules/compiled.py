"""The rules of a schema, compiled once for the same bytes: a tree beside the schema's, with the ways to rules alone.

A new expression may use what the version before this one had, too, so that the cluster can be set back; one that is
stored already may use everything. What the first refuses is kept with the reason.

Source: apiextensions-apiserver pkg/apiserver/schema/cel (``NewValidator``, ``Compile``); apiserver
pkg/cel/environment/environment.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, final

from deltaloop import cel
from deltaloop.api.kubernetes_version import MINOR
from deltaloop.apiserver.core.crds.rules.declarations import Declared, DeclaredTypes, declared, is_whole
from deltaloop.apiserver.core.crds.rules.names import escaped
from deltaloop.apiserver.core.crds.rules.values import Reader, reader
from deltaloop.cel.faults import InvalidExpressionError
from deltaloop.cel.kubernetes import kubernetes_environment
from deltaloop.schemas.described_fields import described_field
from deltaloop.schemas.json_values import is_mapping, items, mapping, text
from deltaloop.schemas.nesting import decode_json

RULES: Final = "x-kubernetes-validations"
_WORD: Final = RULES.encode()
SELF: Final = "self"
OLD_SELF: Final = "oldSelf"
_STORED: Final = kubernetes_environment()
_MAJOR, _MINOR = (int(part) for part in MINOR.split("."))
_NEW: Final = kubernetes_environment((_MAJOR, _MINOR - 1))


@final
@dataclass(frozen=True, slots=True)
class RuleExpression:
    """An expression of a rule, compiled if it can be.

    Attributes:
        source: The expression.
        compiled: The program; None if there is none.
        fault: Why there is none.
        fault_if_new: Why there may be none if the expression is not stored already; "" if it may.
    """

    source: str
    compiled: cel.CompiledExpression | None = None
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
class RuleNode:
    """A schema with rules, or one on the way to them.

    Attributes:
        schema: The schema.
        declared: What it declares; None if no type.
        rules: Its own rules.
        fields: Those of its fields in which there are rules.
        items: That of its items, if there are rules.
        others: That of its other fields, if there are rules.
    """

    def __init__(self, schema: dict[str, object], found: Declared | None, *, is_root: bool) -> None:
        self.schema = schema
        self.declared = found
        self.fields: dict[str, RuleNode] = {}
        self.items: RuleNode | None = None
        self.others: RuleNode | None = None
        self._is_root = is_root

    @cached_property
    def rules(self) -> tuple[CompiledRule, ...]:
        """Its own rules, in their order."""
        given = items(self.schema.get(RULES))
        if not given or self.types is None:
            return ()
        types, scope = self.types, self.types.scope
        plain = [environment.with_variables({SELF: scope, OLD_SELF: scope}, types) for environment in (_NEW, _STORED)]
        optional = [
            environment.with_variables({SELF: scope, OLD_SELF: cel.optional_of(scope)}, types)
            for environment in (_NEW, _STORED)
        ]
        return tuple(
            _rule(self.schema, mapping(rule), optional if at_optional(mapping(rule)) else plain) for rule in given
        )

    @cached_property
    def types(self) -> DeclaredTypes | None:
        """The types of its expressions; None if it has no type."""
        return DeclaredTypes(self.declared) if self.declared is not None else None

    @cached_property
    def compares(self) -> bool:
        """Whether one of its rules compares with what was there before."""
        return any(rule.needs_old for rule in self.rules)

    @cached_property
    def read(self) -> Reader:
        """What makes a value what expressions see."""
        return reader(self.schema, is_root=self._is_root)


def at_optional(rule: dict[str, object]) -> bool:
    """Tell whether a rule asks for what was there before as an optional value."""
    return rule.get("optionalOldSelf") is True


def may_have_rules(source: bytes) -> bool:
    """Tell quickly whether a schema in JSON may have rules; False is certain."""
    return _WORD in source


@lru_cache(maxsize=256)
def rules_of(source: bytes) -> RuleNode | None:
    """Return the rules of an object's schema in JSON; None if there are none."""
    return rules_below(mapping(decode_json(source)), is_root=True) if may_have_rules(source) else None


def rules_below(schema: dict[str, object], *, is_root: bool) -> RuleNode | None:
    """Return the rules of a decoded schema; None if there are none."""
    return _node(schema, declared(schema, is_root=is_root), is_root=is_root) if has_rules(schema) else None


def has_rules(schema: dict[str, object]) -> bool:
    """Tell whether a structural schema has rules in itself or in what is below."""
    if schema.get(RULES):
        return True
    return any(has_rules(child) for child in parts_of(schema))


def parts_of(schema: dict[str, object]) -> list[dict[str, object]]:
    """Return the schemas of a schema's fields and items."""
    below = [*mapping(schema.get("properties")).values(), schema.get("items"), schema.get("additionalProperties")]
    return [child for child in below if is_mapping(child)]


def _node(schema: dict[str, object], found: Declared | None, *, is_root: bool) -> RuleNode | None:
    node = RuleNode(schema, found, is_root=is_root)
    for name, given in mapping(schema.get("properties")).items():
        child, identifier = mapping(given), escaped(name)
        if not has_rules(child):
            continue
        if identifier is None:
            part = declared(child, is_root=is_whole(child))
        else:
            part = found.fields.get(identifier) if found is not None else None
        below = _node(child, part, is_root=is_whole(child))
        if below is not None:
            node.fields[name] = below
    element = found.element if found is not None else None
    if is_mapping(item := schema.get("items")) and has_rules(item):
        node.items = _node(item, element, is_root=is_whole(item))
    if is_mapping(other := schema.get("additionalProperties")) and has_rules(other):
        node.others = _node(other, element, is_root=is_whole(other))
    return node


def _rule(schema: dict[str, object], rule: dict[str, object], environments: list[cel.Environment]) -> CompiledRule:
    test = _program(text(rule.get("rule")), environments, cel.BOOL)
    words = text(rule.get("messageExpression"))
    path = text(rule.get("fieldPath"))
    compiled = test.compiled
    return CompiledRule(
        test=test,
        message=text(rule.get("message")),
        own_message=_program(words, environments, cel.STRING) if words and compiled is not None else None,
        reason=text(rule.get("reason")),
        path=described_field(path, schema).shown if path else "",
        needs_old=compiled is not None and OLD_SELF in compiled.variables,
        is_optional=at_optional(rule),
        source=rule,
    )


_FAULTS: Final = {
    cel.BOOL: ("compilation failed: ", "cel expression must evaluate to a bool"),
    cel.STRING: ("messageExpression compilation failed: ", "messageExpression must evaluate to a string"),
}


def _program(source: str, environments: list[cel.Environment], wanted: cel.Type) -> RuleExpression:
    if not source.strip():
        return RuleExpression(source)
    head, other = _FAULTS[wanted]
    fault = ""
    for environment in environments:
        try:
            compiled = environment.compile(source)
        except InvalidExpressionError as error:
            fault = fault or f"{head}{error}"
            continue
        if compiled.type != wanted:
            return RuleExpression(source, None, other)
        return RuleExpression(source, compiled, "", fault)
    return RuleExpression(source, None, fault)
