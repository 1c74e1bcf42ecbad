"""What a field's annotation can say beside its type: types of Kubernetes' own, what a list is, rules.

All of it is ``msgspec.Meta``, so that classes stay what they are to msgspec, and a schema can say what msgspec has no
word for: ``Annotated[str, msgspec.Meta(extra_json_schema={"format": "uri"})]``.
"""

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
"""A whole number of 32 bits, as replicas and ports are."""

IntOrString = Annotated[int | str, Meta(extra_json_schema={"x-kubernetes-int-or-string": True})]
"""A number or a text, as for ports and percentages."""

Quantity = Annotated[
    int | str,
    Meta(
        extra_json_schema={
            "x-kubernetes-int-or-string": True,
            "pattern": rf"^[+-]?{_DECIMAL}([KMGTPE]i|[numkMGTPE]|[eE][+-]?{_DECIMAL})?$",
        }
    ),
]
"""An amount such as ``500m`` or ``10Gi``; a whole number is one, too.

Source: apimachinery pkg/api/resource/quantity.go.
"""


@final
@dataclass(frozen=True, slots=True)
class ValidationRule:
    """A rule in the Common Expression Language that the server holds objects to.

    Attributes:
        rule: What must be true; ``self`` is the value, ``oldSelf`` what it was before.
        message: What the server says if it is not.
        message_expression: An expression that gives the message.
        reason: The API's reason, such as ``FieldValueForbidden``; "" is ``FieldValueInvalid``.
        field_path: What is wrong, below where the rule stands, such as ``.replicas``.
        optional_old_self: Whether ``oldSelf`` is an optional value, and the rule is asked for new values, too.
    """

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool = False

    def as_schema(self) -> dict[str, Any]:
        """Return it as a schema has it."""
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
    """Return the annotation for rules about a field.

    It is put beside the type: ``Annotated[int, field_rules("self >= oldSelf")]``.

    Args:
        rules: All rules of the field, in one call; a text is a rule without a message of its own.

    Raises:
        InvalidArgumentError: If there is no rule.
    """
    return Meta(extra_json_schema={RULES: _written(rules)})


def _written(rules: tuple[ValidationRule | str, ...]) -> list[dict[str, Any]]:
    if not rules:
        raise InvalidArgumentError("there is no rule; give at least one, such as 'self.least <= self.most'")
    given: tuple[object, ...] = rules
    if wrong := [rule for rule in given if not isinstance(rule, ValidationRule | str)]:
        raise InvalidArgumentError(f"{wrong[0]!r} is no rule; give a text, or a ValidationRule")
    return [ValidationRule(rule).as_schema() if isinstance(rule, str) else rule.as_schema() for rule in rules]


def list_map_keys(*keys: str) -> Meta:
    """Return the annotation for a list whose items are told apart by some of their fields.

    Server-side apply then merges the list item by item, and no two items may have the same keys:
    ``Annotated[list[Port], list_map_keys("port", "protocol")]``.

    Args:
        keys: The fields, by the names that they have in JSON.

    Raises:
        InvalidArgumentError: If there is no key.
    """
    if not keys:
        raise InvalidArgumentError("list_map_keys() names no field; give those that tell the items apart")
    return Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [*keys]})


def list_set() -> Meta:
    """Return the annotation for a list in which nothing may be twice.

    Server-side apply then merges it item by item: ``Annotated[list[str], list_set()]``.
    """
    return Meta(extra_json_schema={"x-kubernetes-list-type": "set"})


def atomic() -> Meta:
    """Return the annotation for a list or an object that server-side apply replaces as a whole."""
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
    """One aspect of an object's state, as ``ctx.status`` writes it.

    Attributes:
        type: Which aspect, such as ``Ready``.
        status: Whether it is so.
        reason: Why, as one word for programs.
        message: Why, for people.
        last_transition_time: Since when the status is what it is.
        observed_generation: The generation of the object that this was found out for.

    Source: apimachinery pkg/apis/meta/v1/types.go (``Condition``).
    """

    type: Annotated[str, Meta(max_length=316, min_length=1)]
    status: Literal["True", "False", "Unknown"]
    last_transition_time: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    reason: Annotated[str, Meta(max_length=1024)] = ""
    message: Annotated[str, Meta(max_length=32768)] = ""
    observed_generation: Annotated[int, Meta(ge=0)] | UnsetType = UNSET


Conditions = Annotated[list[Condition], list_map_keys("type")]
"""The conditions of a status: a list with one of each type."""
