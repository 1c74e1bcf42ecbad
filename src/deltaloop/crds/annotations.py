"""Annotations for fields: Kubernetes types, list types, and validation rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar, final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.pydantic_models import InModels
from deltaloop.api.resource_type import definition_of

C = TypeVar("C", bound=type)

RULES: Final = "x-kubernetes-validations"
CLASS_RULES: Final = "__class_rules__"

_DECIMAL: Final = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"

Int32 = Annotated[int, Meta(extra_json_schema={"format": "int32"})]
"""32-bit integer, for example a port or a number of replicas."""

IntOrString = Annotated[int | str, Meta(extra_json_schema={"x-kubernetes-int-or-string": True})]
"""Integer or string, for example a port or a percentage."""

Quantity = Annotated[
    int | str,
    Meta(
        extra_json_schema={
            "x-kubernetes-int-or-string": True,
            "pattern": rf"^[+-]?{_DECIMAL}([KMGTPE]i|[numkMGTPE]|[eE][+-]?{_DECIMAL})?$",
        }
    ),
]
"""Amount such as ``500m`` or ``10Gi``, or an integer.

Source: apimachinery pkg/api/resource/quantity.go.
"""


@final
@dataclass(frozen=True, slots=True)
class ValidationRule:
    """Rule in the Common Expression Language that the server enforces.

    Attributes:
        rule: Expression that must be true. ``self`` is the value, ``oldSelf`` is its old value.
        message: Message if the rule fails.
        message_expression: Expression that returns the message.
        reason: Reason in the API, for example ``FieldValueForbidden``. "" means ``FieldValueInvalid``.
        field_path: Path of the invalid field below the rule, for example ``.replicas``.
        optional_old_self: Whether ``oldSelf`` is an optional value, and the rule also applies to new values.
    """

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool = False

    def as_schema(self) -> dict[str, Any]:
        """Return the rule as it appears in a schema."""
        said: dict[str, Any] = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self,
        }
        return {name: value for name, value in said.items() if value}


def class_rules(*rules: ValidationRule | str) -> Callable[[C], C]:
    """Decorate a class with rules about its values; ``self`` is one of them.

    Put it below ``custom_resource``, or on a class that a field of the kind uses.

    Args:
        rules: Rules. A string is a rule without its own message.

    Raises:
        InvalidArgumentError: If there is no rule, or ``custom_resource`` has already read the class.
    """
    written = _written(rules)

    def decorate(cls: C) -> C:
        if definition_of(cls) is not None:
            raise InvalidArgumentError(
                f"class_rules must be below custom_resource, got it above on class {cls.__name__}. Swap the decorators."
            )
        setattr(cls, CLASS_RULES, (*cls.__dict__.get(CLASS_RULES, ()), *written))
        return cls

    return decorate


def field_rules(*rules: ValidationRule | str) -> Meta:
    """Return an annotation with the rules of a field.

    For example, use ``Annotated[int, field_rules("self >= oldSelf")]``.

    Args:
        rules: All rules of the field. A string is a rule without its own message.

    Raises:
        InvalidArgumentError: If there is no rule.
    """
    return Meta(extra_json_schema={RULES: _written(rules)})


def _written(rules: tuple[ValidationRule | str, ...]) -> list[dict[str, Any]]:
    if not rules:
        raise InvalidArgumentError(
            "must contain at least one rule, for example 'self.least <= self.most'.", argument="rules"
        )
    given: tuple[object, ...] = rules
    if wrong := [rule for rule in given if not isinstance(rule, ValidationRule | str)]:
        raise InvalidArgumentError(f"must be texts or ValidationRules, got {wrong[0]!r}.", argument="rules")
    return [ValidationRule(rule).as_schema() if isinstance(rule, str) else rule.as_schema() for rule in rules]


def list_map_keys(*keys: str) -> Meta:
    """Return an annotation for a list whose items are identified by some of their fields.

    Server-side apply then merges the list by item, and two items must not have the same keys. For example, use
    ``Annotated[list[Port], list_map_keys("port", "protocol")]``.

    Args:
        keys: JSON names of the fields.

    Raises:
        InvalidArgumentError: If there is no key.
    """
    if not keys:
        raise InvalidArgumentError("must contain the fields that identify an item, got none.", argument="keys")
    return Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [*keys]})


def list_set() -> Meta:
    """Return an annotation for a list of distinct items.

    Server-side apply then merges the list by item. For example, use ``Annotated[list[str], list_set()]``.
    """
    return Meta(extra_json_schema={"x-kubernetes-list-type": "set"})


def atomic() -> Meta:
    """Return an annotation for a list or an object that server-side apply replaces as a whole."""
    return Meta(extra_json_schema={"x-kubernetes-list-type": "atomic", "x-kubernetes-map-type": "atomic"})


class TypedReference(InModels, msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """Names an object of any kind.

    Attributes:
        kind: Its kind, such as ``Secret``.
        name: Its name.
        api_version: Group and version of its kind; absent is the reader's to say.
        namespace: Its namespace; absent is that of the object with the reference.
    """

    kind: Annotated[str, Meta(min_length=1)]
    name: Annotated[str, Meta(min_length=1)]
    api_version: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET


class Condition(InModels, msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """Condition in the status of an object, as written by ``ctx.status``.

    Attributes:
        type: Name of the condition, for example ``Ready``.
        status: Whether the condition is true.
        reason: Cause of the last change, as one word.
        message: Explanation for users.
        last_transition_time: Time of the last change of the status.
        observed_generation: Generation of the object that the condition describes.

    Source: apimachinery pkg/apis/meta/v1/types.go (``Condition``).
    """

    type: Annotated[str, Meta(max_length=316, min_length=1)]
    status: Literal["True", "False", "Unknown"]
    last_transition_time: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    reason: Annotated[str, Meta(max_length=1024)] = ""
    message: Annotated[str, Meta(max_length=32768)] = ""
    observed_generation: Annotated[int, Meta(ge=0)] | UnsetType = UNSET


Conditions = Annotated[list[Condition], list_map_keys("type")]
"""Conditions of a status, with at most one of each type."""
