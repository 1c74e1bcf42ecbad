"""Evaluate the rules of a schema when an object is written.

Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go; apiserver pkg/cel/common/{equality,maplist}.go.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple, cast, final

import msgspec

from deltaloop.api.json_values import is_mapping, items, mapping, text, texts
from deltaloop.cel import OptionalValue
from deltaloop.cel.errors import CostLimitError
from deltaloop.cel.kubernetes import OBJECT_BUDGET, PER_CALL_LIMIT
from deltaloop.cel.values import NO_VALUE
from deltaloop.crds.rules.compiled import OLD_SELF, SELF, CompiledRule, RuleNode, RuleScope, rules_below
from deltaloop.schemas.field_errors import (
    SchemaError,
    duplicate_text,
    forbidden_field,
    invalid_text,
    invalid_value,
    required,
)
from deltaloop.schemas.types import TypeNode
from deltaloop.schemas.validating import is_same, keyed_items, keys_of, shown

_LONGEST_MESSAGE: Final = 5 * 1024
_ERROR_BYTES: Final = 300
_MOST_TEXT: Final = 2 * 1024 * 1024
# Messages do not contain values of these types.
_PARTED: Final = ("object", "array")
_NO_MORE: Final = "no further validation rules will be run"


@final
class _Pair:
    def __init__(self, node: TypeNode, old: object, value: object) -> None:
        self.node = node
        self.old = old
        self.value = value

    @cached_property
    def is_same(self) -> bool:
        """Whether the value is unchanged. Cached, because each broken rule of each item needs it."""
        return is_same(self.node, self.old, self.value)

    @cached_property
    def items(self) -> dict[str, object]:
        return keyed_items(self.node.list_keys if self.node.list_type == "map" else (), self.old)


class _Former(NamedTuple):
    """Known old values: the pair of the part, if any, and of the nearest enclosing part that has one."""

    here: _Pair | None = None
    around: _Pair | None = None

    def is_unchanged(self) -> bool:
        pair = self.here or self.around
        return pair is not None and pair.is_same

    def field(self, name: str) -> _Former:
        if self.here is None:
            return self
        if self.around is None and name in ("apiVersion", "kind"):
            return _Former()  # the request determines both
        node, old, value = self.here.node, self.here.old, self.here.value
        child = node.fields.get(name) or node.other
        has_both = is_mapping(old) and is_mapping(value) and name in old and name in value
        pair = _Pair(child, mapping(old)[name], mapping(value)[name]) if has_both and child is not None else None
        return _Former(pair, self.here)

    def item(self, value: object) -> _Former:
        if self.here is None:
            return self
        node = self.here.node
        keys = node.list_keys if node.list_type == "map" else ()
        found = self.here.items.get(keys_of(keys, value))
        pair = None if found is None or node.items is None else _Pair(node.items, found, value)
        return _Former(pair, self.here)


class _BudgetSpentError(Exception):
    """Evaluation stops, because the budget is exhausted."""


def evaluate(
    root: RuleNode, tree: TypeNode, fields: dict[str, object], old: dict[str, object] | None = None
) -> list[SchemaError]:
    """Return the errors of an object, which replaces ``old`` if given, by its rules."""
    former = _Former() if old is None else _Former(_Pair(tree, old, fields))
    evaluation = _Evaluation(OBJECT_BUDGET)
    evaluation.run(root, fields, old, "", former)
    return evaluation.errors


def wrong_default(schema: dict[str, object], default: object, field: str, *, is_root: bool) -> list[SchemaError]:
    """Return the errors of a schema's default by its rules, as an unchanged and as a new value."""
    root = rules_below(schema, is_root=is_root)
    if root is None:
        return []
    for old in (default, None):
        evaluation = _Evaluation(OBJECT_BUDGET)
        evaluation.run(root, default, old, field, _Former())
        if evaluation.errors:
            return evaluation.errors
    return []


class _Evaluation:
    """Evaluation of one object. ``_budget`` is the remaining cost."""

    def __init__(self, budget: int) -> None:
        self.errors: list[SchemaError] = []
        self._budget = budget

    def run(self, node: RuleNode, value: object, old: object, path: str, former: _Former) -> None:
        """Evaluate all rules until the budget is exhausted."""
        try:
            self._visit(node, value, old, path, former)
        except _BudgetSpentError:
            return

    def _visit(self, node: RuleNode, value: object, old: object, path: str, former: _Former) -> None:
        if value is None:
            return
        scope = node.scope
        if scope is not None:
            self._ask(node, scope, value, old, path, former)
        if node.items is not None and isinstance(value, list):
            self._visit_items(node, node.items, items(cast("object", value)), old, path, former)
            return
        fields, before = mapping(value), mapping(old)
        if node.others is not None:
            for name, inner in fields.items():
                self._visit(node.others, inner, before.get(name), f"{path}[{name}]", former.field(name))
        for name, inner in fields.items() if node.fields else ():
            child = node.fields.get(name)
            if child is not None:
                where = f"{path}.{name}" if path else name
                self._visit(child, inner, before.get(name), where, former.field(name))

    def _visit_items(
        self, node: RuleNode, child: RuleNode, value: list[object], old: object, path: str, former: _Former
    ) -> None:
        keys = texts(node.schema.get("x-kubernetes-list-map-keys"))
        keys = keys if node.schema.get("x-kubernetes-list-type") == "map" else ()
        before = keyed_items(keys, old)
        for place, item in enumerate(value):
            self._visit(child, item, before.get(keys_of(keys, item)), f"{path}[{place}]", former.item(item))

    def _ask(self, node: RuleNode, scope: RuleScope, value: object, old: object, path: str, former: _Former) -> None:
        if self._budget <= 0 and scope.rules:
            self._stop(node, path, f"validation failed due to running out of cost budget, {_NO_MORE}")
        bindings: dict[str, object] = {SELF: scope.read(value)}
        if old is not None and scope.compares:
            bindings[OLD_SELF] = scope.read(old)
        for rule in scope.rules:
            if rule.needs_old and old is None and not rule.is_optional:
                continue
            self._ask_one(node, rule, bindings, value, path, former)

    def _ask_one(
        self, node: RuleNode, rule: CompiledRule, bindings: dict[str, object], value: object, path: str, former: _Former
    ) -> None:
        if rule.test.compiled is None:
            if rule.test.fault:
                self._add(node, path, f"rule compile error: {rule.test.fault}")
            return
        given = bindings
        if rule.is_optional:
            former_value = OptionalValue(bindings[OLD_SELF]) if OLD_SELF in bindings else NO_VALUE
            given = {SELF: bindings[SELF], OLD_SELF: former_value}
        found = rule.test.compiled.evaluate_with_cost(given, limit=PER_CALL_LIMIT)
        if found.cost > self._budget:
            self._stop(node, path, f"validation failed due to running out of cost budget, {_NO_MORE}")
        self._budget -= found.cost
        if found.error is not None:
            named, error = (rule.message or rule.test.source).strip(), found.error
            if isinstance(error, CostLimitError):
                self._stop(node, path, f"'{error}': {_NO_MORE} due to call cost exceeds limit for rule: {named}")
            if error.wrong_types:
                words = "call arguments did not match a supported operator, function or macro signature for rule"
                self._add(node, path, f"'{error}': {words}: {named}")
            else:
                self._add(node, path, f"{error} evaluating rule: {named}")
            return
        if found.value is True:
            return
        where = f"{path}.{rule.path}" if path and rule.path else path or rule.path or "<nil>"
        # The real server passes a non-optional oldSelf to the message. Expressions cannot use it, because it has a
        # different type.
        words = self._own_message(node, rule, {SELF: bindings[SELF]} if rule.is_optional else bindings, where, former)
        words = words or rule.message.strip() or f"failed rule: {rule.test.source.strip()}"
        self._tell(rule, former, _refusal(rule, where, "" if _kind(node) in _PARTED else shown(value), words))

    def _own_message(
        self, node: RuleNode, rule: CompiledRule, bindings: dict[str, object], where: str, former: _Former
    ) -> str:
        """Return the message of the rule's expression, or "" if it is unusable."""
        if rule.own_message is None or rule.own_message.compiled is None:
            return ""
        found = rule.own_message.compiled.evaluate_with_cost(bindings, limit=PER_CALL_LIMIT)
        words = ""
        if found.cost > self._budget:
            words = f"messageExpression evaluation failed due to running out of cost budget, {_NO_MORE}"
        elif isinstance(found.error, CostLimitError):
            source = msgspec.json.encode(rule.own_message.source).decode()
            words = f"{_NO_MORE} due to call cost exceeds limit for messageExpression: {source}"
        if words:
            self._tell(rule, former, invalid_value(where, _kind(node), words))
            raise _BudgetSpentError
        self._budget -= found.cost
        message = found.value.strip() if isinstance(found.value, str) else ""
        return "" if "\n" in message or len(message.encode()) > _LONGEST_MESSAGE else message

    def _tell(self, rule: CompiledRule, former: _Former, error: SchemaError) -> None:
        if len(self.errors) * (_ERROR_BYTES + len(error.text)) > _MOST_TEXT:
            return  # the result is already certain
        self.errors.append(msgspec.structs.replace(error, tolerated=not rule.needs_old and former.is_unchanged()))

    def _add(self, node: RuleNode, path: str, words: str) -> None:
        if len(self.errors) * (_ERROR_BYTES + len(path) + len(words)) > _MOST_TEXT:
            return
        self.errors.append(invalid_value(path or "<nil>", _kind(node), words))

    def _stop(self, node: RuleNode, path: str, words: str) -> None:
        self._add(node, path, words)
        raise _BudgetSpentError


def _kind(node: RuleNode) -> str:
    return text(node.schema.get("type"))


def _refusal(rule: CompiledRule, where: str, value: str, words: str) -> SchemaError:
    """Return the error of a broken rule with the author's reason. ``value`` "" is not shown."""
    if rule.reason == "FieldValueForbidden":
        return forbidden_field(where, words)
    if rule.reason == "FieldValueRequired":
        return required(where, words)
    if rule.reason == "FieldValueDuplicate":
        return duplicate_text(where, value) if value else SchemaError(where, rule.reason, "Duplicate value")
    if value:
        return invalid_text(where, value, words)
    return SchemaError(where, "FieldValueInvalid", f"Invalid value: {words}")
