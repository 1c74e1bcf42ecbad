"""The options of writes: whether they are carried out at all, and how a delete is meant.

Source: apimachinery pkg/apis/meta/v1/types.go, pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from deltaloop.api.json_values import escape_html, mapping
from deltaloop.apiserver.core import failures
from deltaloop.schemas.faults import FieldError, invalid_value, not_supported

OPTIONS_VERSION: Final = "meta.k8s.io/v1"
_POLICIES: Final = ("Foreground", "Background", "Orphan")


def check_dry_run(values: tuple[str, ...]) -> bool:
    """Tell by all values of a delete's ``dryRun`` whether nothing is to be stored.

    Raises:
        InvalidError: If a value is not ``All``.
    """
    errors = [*dry_run_errors(values)]
    if errors:
        raise failures.invalid_options("DeleteOptions", errors)
    return bool(values)


def dry_run_errors(values: tuple[str, ...]) -> Iterator[FieldError]:
    """Yield an error for a ``dryRun`` that has another value than ``All``; all its values are shown."""
    if any(value != "All" for value in values):
        shown = escape_html(msgspec.json.encode([value[:64] for value in values]).decode())
        yield FieldError("dryRun", "FieldValueNotSupported", f'Unsupported value: {shown}: supported values: "All"')


class _Preconditions(msgspec.Struct, frozen=True, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, rename="camel"):
    """The options of a delete, as its body has them."""

    grace_period_seconds: int | None = None
    preconditions: _Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] | None = None

    @property
    def policy(self) -> str | None:
        """The propagation policy, also if the deprecated ``orphanDependents`` specifies it."""
        if self.orphan_dependents is not None:
            return "Orphan" if self.orphan_dependents else "Background"
        return self.propagation_policy

    def as_object(self) -> dict[str, object]:
        """Return them as an object, as admission is told of them."""
        fields = mapping(msgspec.to_builtins(self))
        said = {name: value for name, value in fields.items() if value is not None}
        return {"kind": "DeleteOptions", "apiVersion": OPTIONS_VERSION, **said}


def parse_delete_options(value: object) -> DeleteOptions:
    """Read and check delete options.

    Raises:
        BadRequestError: If their types are wrong.
        InvalidError: If their values are.
    """
    try:
        options = msgspec.convert(value, DeleteOptions)
    except msgspec.ValidationError as error:
        raise failures.bad_request(f"the delete options cannot be read: {error}") from None
    errors: list[FieldError] = []
    policy = options.propagation_policy
    if policy is not None and options.orphan_dependents is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid_value("propagationPolicy", f'"{policy}"', text))
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if errors:
        raise failures.invalid_options("DeleteOptions", errors)
    if options.grace_period_seconds is not None and options.grace_period_seconds < 0:
        return msgspec.structs.replace(options, grace_period_seconds=1)
    return options
