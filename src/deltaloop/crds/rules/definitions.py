"""Validate the rules in a CRD: types, costs, and uses of ``oldSelf``.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation/{validation,cel_validation}.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, final

import msgspec

from deltaloop.api.json_values import at, escape_html, integer, items, mapping, text
from deltaloop.cel import UNLIMITED
from deltaloop.cel.kubernetes import MAX_REQUEST_BYTES, STATIC_CRD_LIMIT, STATIC_RULE_LIMIT
from deltaloop.crds.rules.compiled import (
    RULES,
    CompiledRule,
    RuleExpression,
    RuleNode,
    parts_of,
    rules_of,
)
from deltaloop.crds.rules.evaluation import wrong_default
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, internal, invalid_text, invalid_value

_MOST_NAMED: Final = 4
_GREATEST_FACTOR: Final = 100
_UNTYPED: Final = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert "
    "structural schema to CEL declarations"
)
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


@final
@dataclass(frozen=True, slots=True)
class RuleChecks:
    """``ExpressionChecks`` for one version; ``known`` expressions are stored, so they may use all features."""

    known: frozenset[str] = frozenset()
    unchanged: bool = False

    def wrong_rules(
        self, schema: dict[str, object], field: str, others: Sequence[SchemaError]
    ) -> Iterator[SchemaError]:
        """Yield the errors of the rules. Rules above other errors are skipped."""
        root = rules_of(msgspec.json.encode(schema))
        if root is None:
            return
        walk = _Walk(self, tuple(error.field for error in others))
        yield from walk.node_errors(root, field, most=1, apart="")
        yield from walk.total_errors(field)

    def wrong_default(
        self, schema: dict[str, object], default: object, field: str, *, is_root: bool
    ) -> Sequence[SchemaError]:
        return wrong_default(schema, default, field, is_root=is_root)


def expressions_of(crd: dict[str, object]) -> frozenset[str]:
    schemas = [at(version, "schema", "openAPIV3Schema") for version in items(at(crd, "spec", "versions"))]
    return frozenset(expression for schema in schemas for expression in _expressions(mapping(schema)))


def _expressions(schema: dict[str, object]) -> Iterator[str]:
    for rule in items(schema.get(RULES)):
        yield text(at(rule, "rule"))
        yield text(at(rule, "messageExpression"))
    for child in parts_of(schema):
        yield from _expressions(child)


@dataclass(slots=True)
class _Walk:
    checks: RuleChecks
    wrong: tuple[str, ...]
    total: int = 0
    expensive: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def node_errors(self, node: RuleNode, path: str, *, most: int | None, apart: str) -> Iterator[SchemaError]:
        """Yield the errors below a schema, and then its own."""
        inner = _multiplied(most, _elements(node.schema))
        if node.others is not None:
            yield from self.node_errors(node.others, f"{path}.additionalProperties", most=inner, apart=apart)
        for name, child in node.fields.items():
            yield from self.node_errors(child, f"{path}.properties[{name}]", most=inner, apart=apart)
        if node.items is not None:
            keyed = node.schema.get("x-kubernetes-list-type") == "map"
            yield from self.node_errors(node.items, f"{path}.items", most=inner, apart=apart or ("" if keyed else path))
        scope = None if any(_is_at_or_below(where, path) for where in self.wrong) else node.scope
        if scope is None:
            return
        if scope.declared is None:
            yield internal(f"{path}.{RULES}", _UNTYPED)
            return
        times = MAX_REQUEST_BYTES // (scope.declared.least_bytes + 1) if most is None else most
        for place, rule in enumerate(scope.rules):
            yield from self._rule_errors(rule, f"{path}.{RULES}[{place}]", times)
            yield from _comparing_errors(rule, f"{path}.{RULES}[{place}]", apart)

    def _rule_errors(self, rule: CompiledRule, path: str, times: int) -> Iterator[SchemaError]:
        cost = min(self._cost(rule.test) * times, UNLIMITED)
        yield from self._count(cost, f"{path}.rule", "estimated rule cost")
        if fault := self._fault(rule.test):
            yield invalid_text(f"{path}.rule", _shown(rule), fault)
            return
        if rule.own_message is None:
            return
        if fault := self._fault(rule.own_message):
            yield invalid_text(f"{path}.messageExpression", _shown(rule), fault)
        else:
            cost = self._cost(rule.own_message)
            yield from self._count(cost, f"{path}.messageExpression", "estimated messageExpression cost")

    def _fault(self, program: RuleExpression) -> str:
        return program.fault or (program.fault_if_new if program.source not in self.checks.known else "")

    def _cost(self, program: RuleExpression) -> int:
        return 0 if self._fault(program) else program.cost

    def _count(self, cost: int, path: str, what: str) -> Iterator[SchemaError]:
        if cost > STATIC_RULE_LIMIT and not self.checks.unchanged:
            yield forbidden_field(path, _too_expensive(what, cost, STATIC_RULE_LIMIT))
        self.total = min(self.total + cost, UNLIMITED)
        if cost * 100 >= STATIC_CRD_LIMIT:
            self.expensive.append((cost, path))

    def total_errors(self, path: str) -> Iterator[SchemaError]:
        if self.total <= STATIC_CRD_LIMIT:
            return
        for _, where in sorted(self.expensive, key=lambda found: -found[0])[:_MOST_NAMED]:
            words = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden_field(where, words)
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden_field(path, _too_expensive(what, self.total, STATIC_CRD_LIMIT))


def _comparing_errors(rule: CompiledRule, path: str, apart: str) -> Iterator[SchemaError]:
    if rule.needs_old:
        if apart:
            shown = msgspec.json.encode(rule.test.source).decode()
            words = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {apart}"
            yield invalid_text(f"{path}.rule", shown, words)
    elif isinstance(optional := rule.source.get("optionalOldSelf"), bool):
        yield invalid_value(f"{path}.optionalOldSelf", optional, "may not be set if oldSelf is not used in rule")


def _is_at_or_below(where: str, path: str) -> bool:
    return where.startswith(path) and where[len(path) : len(path) + 1] in ("", ".", "[")


def _elements(schema: dict[str, object]) -> int | None:
    """Return the number of values below a value of a schema, or None for no limit."""
    kind = schema.get("type")
    if kind == "object" and schema.get("additionalProperties") is not None:
        most = schema.get("maxProperties")
    elif kind == "array":
        most = schema.get("maxItems")
    else:
        return 1
    return None if most is None else max(integer(most), 0)


def _multiplied(most: int | None, elements: int | None) -> int | None:
    return None if most is None or elements is None else min(most * elements, UNLIMITED)


def _too_expensive(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > _GREATEST_FACTOR:
        shown = f"more than {_GREATEST_FACTOR}x"
    else:
        shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} {_ADVICE}"


def _shown(rule: CompiledRule) -> str:
    """Return a rule as the server's messages show it, with all fields under their Go names."""
    source = rule.source
    fields = {
        "Rule": text(source.get("rule")),
        "Message": text(source.get("message")),
        "MessageExpression": text(source.get("messageExpression")),
        "Reason": source.get("reason"),
        "FieldPath": text(source.get("fieldPath")),
        "OptionalOldSelf": source.get("optionalOldSelf"),
    }
    return escape_html(msgspec.json.encode(fields).decode())
