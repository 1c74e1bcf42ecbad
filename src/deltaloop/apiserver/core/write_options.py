"""Options of writes, from the query or from the body of a DELETE.

Source: apimachinery pkg/apis/meta/v1/{types.go,validation}; apiserver pkg/endpoints/handlers/create.go
(``managerOrUserAgent``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from deltaloop.api.json_values import escape_html, mapping
from deltaloop.apiserver.core import status_errors
from deltaloop.schemas.field_errors import (
    SchemaError,
    forbidden_field,
    invalid_text,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from deltaloop.schemas.go_numbers import quoted

OPTIONS_VERSION: Final = "meta.k8s.io/v1"
_POLICIES: Final = ("Foreground", "Background", "Orphan")
_INT64: Final = 1 << 63
_LONGEST: Final = 128
_Query = Mapping[str, tuple[str, ...]]


class FieldValidation(Enum):
    """Handling of unknown and duplicate fields: drop, drop with a warning, or reject."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


_MODES: Final = sorted(mode.value for mode in FieldValidation)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    dry_run: bool
    validation: FieldValidation
    manager: str
    force: bool
    kind: str
    given: Mapping[str, object]

    def as_object(self) -> dict[str, object]:
        return {"kind": self.kind, "apiVersion": OPTIONS_VERSION, **self.given}


def parse_write_options(kind: str, query: _Query, *, user_agent: str, applies: bool | None = None) -> WriteOptions:
    """Parse the options, or raise InvalidError with all invalid options."""
    manager, mode = (query.get(name, ("",))[0] for name in ("fieldManager", "fieldValidation"))
    force = parse_boolean(query["force"][0]) if "force" in query else None
    errors: list[SchemaError] = []
    if applies and not manager:
        errors.append(required("fieldManager", "is required for apply patch"))
    if applies is False and force is not None:
        errors.append(forbidden_field("force", "may not be specified for non-apply patch"))
    errors += _manager_errors(manager)
    dry_run = query.get("dryRun", ())
    errors += dry_run_errors(dry_run)
    if mode and mode not in _MODES:
        errors.append(not_supported("fieldValidation", mode, ("", *_MODES)))
    if errors:
        raise status_errors.invalid_options(kind, errors)
    given: dict[str, object] = {
        name: value
        for name, value in (
            ("dryRun", list(dry_run)),
            ("force", force),
            ("fieldManager", manager),
            ("fieldValidation", mode),
        )
        if value not in (None, "", [])
    }
    return WriteOptions(
        kind=kind,
        given=given,
        dry_run=bool(dry_run),
        validation=FieldValidation(mode or "Warn"),
        manager=manager or _name_of(user_agent),
        force=force or False,
    )


def _name_of(user_agent: str) -> str:
    return "".join(filter(str.isprintable, user_agent.partition("/")[0][:_LONGEST]))


def _manager_errors(name: str) -> Iterator[SchemaError]:
    if len(name.encode()) > _LONGEST:
        yield too_long("fieldManager", _LONGEST)
    for position, sign in enumerate(name[: _LONGEST + 1]):
        if not sign.isprintable():
            text = f"invalid character U+{ord(sign):04X} (at position {len(name[:position].encode())})"
            yield invalid_text("fieldManager", quoted(name[: _LONGEST + 1]), text)


def parse_boolean(text: str | None) -> bool | None:
    """Parse a boolean like Go: all values except ``false`` and ``0`` are true, even an empty value. None stays None."""
    return None if text is None else text.lower() != "false" and text != "0"


def check_dry_run(values: tuple[str, ...]) -> bool:
    """Return whether a delete is a dry run, or raise InvalidError for a value other than ``All``."""
    errors = [*dry_run_errors(values)]
    if errors:
        raise status_errors.invalid_options("DeleteOptions", errors)
    return bool(values)


def dry_run_errors(values: tuple[str, ...]) -> Iterator[SchemaError]:
    if any(value != "All" for value in values):
        shown = escape_html(msgspec.json.encode([value[:64] for value in values]).decode())
        yield SchemaError("dryRun", "FieldValueNotSupported", f'Unsupported value: {shown}: supported values: "All"')


class _Preconditions(msgspec.Struct, frozen=True, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, rename="camel"):
    grace_period_seconds: int | None = None
    preconditions: _Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] | None = None

    @property
    def policy(self) -> str | None:
        """Propagation policy, also if the deprecated ``orphanDependents`` specifies it."""
        if self.orphan_dependents is not None:
            return "Orphan" if self.orphan_dependents else "Background"
        return self.propagation_policy

    def as_object(self) -> dict[str, object]:
        fields = mapping(msgspec.to_builtins(self))
        said = {name: value for name, value in fields.items() if value is not None}
        return {"kind": "DeleteOptions", "apiVersion": OPTIONS_VERSION, **said}


def parse_delete_options(value: object) -> DeleteOptions:
    """Parse delete options. Raises BadRequestError for wrong types, and InvalidError for invalid values."""
    try:
        options = msgspec.convert(value, DeleteOptions)
    except msgspec.ValidationError as error:
        raise status_errors.bad_request(f"the delete options cannot be read: {error}") from None
    errors: list[SchemaError] = []
    policy = options.propagation_policy
    if policy is not None and options.orphan_dependents is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid_value("propagationPolicy", policy, text))
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("propagationPolicy", policy, (*_POLICIES, "nil")))
    if errors:
        raise status_errors.invalid_options("DeleteOptions", errors)
    if options.grace_period_seconds is not None and options.grace_period_seconds < 0:
        return msgspec.structs.replace(options, grace_period_seconds=1)
    return options


def delete_query(query: Mapping[str, str]) -> dict[str, object]:
    """Return the delete options in a query, or raise BadRequestError for an invalid number."""
    options: dict[str, object] = {}
    if query.get("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = parse_integer(query["gracePeriodSeconds"])
    if "propagationPolicy" in query:
        options["propagationPolicy"] = query["propagationPolicy"]
    if "orphanDependents" in query:
        options["orphanDependents"] = parse_boolean(query["orphanDependents"])
    return options


def parse_integer(text: str) -> int:
    """Parse a 64-bit integer like Go, or raise BadRequestError."""
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit()):
        raise status_errors.bad_request(f'strconv.ParseInt: parsing "{text[:64]}": invalid syntax')
    number = int(digits) * (-1 if text.startswith("-") else 1) if len(digits) < 32 else _INT64
    if not -_INT64 <= number < _INT64:
        raise status_errors.bad_request(f'strconv.ParseInt: parsing "{text[:64]}": value out of range')
    return number
