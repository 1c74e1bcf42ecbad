"""Strategy of custom resources: validation by schema, rules and scale, and completion of CRD deletes.

Source: apiextensions-apiserver pkg/registry/customresource/{strategy,validator}.go; apimachinery
pkg/apis/meta/v1/unstructured/helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deltaloop.api.json_values import is_mapping
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.crds.codec import embedded_errors
from deltaloop.apiserver.core.served_resource import ScalePaths
from deltaloop.apiserver.core.strategy import Flags, Strategy, Writes
from deltaloop.crds.rules.compiled import may_have_rules, rules_of
from deltaloop.crds.rules.evaluation import evaluate
from deltaloop.schemas.decoding import schema_errors, status_errors
from deltaloop.schemas.field_errors import SchemaError, invalid_value
from deltaloop.schemas.go_numbers import go_type
from deltaloop.schemas.types import Schema

_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
_MOST_REPLICAS: Final = 2**31 - 1
LABEL_REFUSAL: Final = "field label not supported: {}"
FLAGS: Final = Flags(
    generation=True,
    unconditional_update=False,
    base_rechecked=False,
    any_finalizer=True,
    status_metadata=frozenset(),
    status_restores="metadata",
    self_described=True,
    protobuf=False,
    strategic_merge=False,
    own_finalizers=False,
)


def custom_strategy(schema: Schema, scale: ScalePaths | None) -> Strategy:
    """Evaluate the validation rules of a schema, unless another error prevents evaluation."""
    has_rules = may_have_rules(schema.source)

    def errors(
        found: list[SchemaError], fields: dict[str, object], before: dict[str, object] | None = None
    ) -> list[SchemaError]:
        found += [*embedded_errors(schema, fields), *replicas_errors(scale, fields)]
        return found + rule_errors(schema, fields, before, found) if has_rules else found

    def new_errors(fields: dict[str, object]) -> list[SchemaError]:
        return errors(schema_errors(schema, fields), fields)

    def update_errors(before: dict[str, object], after: dict[str, object]) -> list[SchemaError]:
        return errors(schema_errors(schema, after, before), after, before)

    def wrong_status(before: dict[str, object], after: dict[str, object]) -> list[SchemaError]:
        return errors(status_errors(schema, after, before), after, before)

    return Strategy(
        validate_new=new_errors,
        validate_update=update_errors,
        validate_status=wrong_status,
        check_new=_check_open,
        removed=_removed,
    )


def rule_errors(
    schema: Schema, fields: dict[str, object], before: dict[str, object] | None, others: list[SchemaError]
) -> list[SchemaError]:
    root = rules_of(schema.source)
    if root is None:
        return []
    if any(error.reason in _BLOCKING for error in others):
        words = "some validation rules were not checked because the object was invalid; correct the existing errors to "
        return [invalid_value("<nil>", None, f"{words}complete validation")]
    return evaluate(root, schema.tree, fields, before)


def _check_open(kind: ResourceType[Resource], name: str, writes: Writes) -> None:
    writes.crds.check_open(kind, name)


def _removed(resource: str, _obj: Resource, writes: Writes, now: float) -> None:
    writes.crds.finish(resource, now=now)


def replicas_errors(paths: ScalePaths | None, fields: dict[str, object]) -> Iterator[SchemaError]:
    if paths is None:
        return
    for path in (paths.spec_replicas, paths.status_replicas):
        value, why = _reach(path, fields)
        if why or (value is not None and type(value) is not int):
            yield invalid_value(path, 0, why or _another_type(path, value, "int64"))
        elif value is not None and value < 0:
            yield invalid_value(path, value, "should be a non-negative integer")
        elif value is not None and value > _MOST_REPLICAS:
            yield invalid_value(path, value, f"should be less than or equal to {_MOST_REPLICAS}")
    if paths.label_selector:
        value, why = _reach(paths.label_selector, fields)
        if why or (value is not None and not isinstance(value, str)):
            shown = why or _another_type(paths.label_selector, value, "string")
            yield invalid_value(paths.label_selector, "", shown)


def _reach(path: str, fields: dict[str, object]) -> tuple[Any, str]:
    """Return the value at a simple path (None if it is missing) and an error message."""
    value: Any = fields
    names = path.strip(".").split(".")
    for count, name in enumerate(names, start=1):
        if value is None:
            return None, ""
        if not is_mapping(value):
            return None, _another_type(f".{'.'.join(names[:count])}", value, "map[string]interface{}")
        value = value.get(name)
    return value, ""


def _another_type(path: str, value: object, wanted: str) -> str:
    return f"{path} accessor error: it is of the type {go_type(value)}, expected {wanted}"
