"""The options of a write that concern field managers: who writes, and for an apply also whether it is forced.

Source: apiserver pkg/endpoints/handlers/create.go (``managerOrUserAgent``), apimachinery
pkg/apis/meta/v1/validation (``ValidateFieldManager``, ``ValidatePatchOptions``).
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.crds.stored_numbers import settle_numbers
from deltaloop.schemas.faults import FieldError, forbidden_field, invalid_value, required
from deltaloop.schemas.json_values import json_type
from deltaloop.schemas.nesting import TooDeepError, decode_json

APPLY_PATCH: Final = "application/apply-patch+yaml"
_LONGEST: Final = 128


def manager_name(kind: str, given: str, user_agent: str) -> str:
    """Return the name of the manager: as given, or the User-Agent up to its first slash.

    Args:
        kind: Name of the options in an error, such as ``CreateOptions``.
        given: The query's ``fieldManager``.
        user_agent: The request's header.

    Raises:
        InvalidError: If the name is too long or cannot be printed.
    """
    errors = list(_name_errors(given))
    if errors:
        raise failures.invalid_options(kind, errors)
    if given:
        return given
    prefix = user_agent.partition("/")[0]
    return "".join(sign for sign in prefix[:_LONGEST] if sign.isprintable())


def _name_errors(name: str) -> list[FieldError]:
    errors: list[FieldError] = []
    shown = msgspec.json.encode(name[: _LONGEST + 1]).decode()
    if len(name) > _LONGEST:
        errors.append(
            FieldError("fieldManager", "FieldValueTooLong", f"Too long: may not be more than {_LONGEST} bytes")
        )
    if not name.isprintable():
        errors.append(invalid_value("fieldManager", shown, "should only contain printable characters"))
    return errors


def check_patch_options(*, applies: bool, manager: str, force: bool | None) -> None:
    """Refuse an apply without a manager, and ``force`` for anything but an apply.

    Raises:
        InvalidError: Naming the option.
    """
    if applies and not manager:
        raise failures.invalid_options("PatchOptions", [required("fieldManager", "is required for apply patch")])
    if not applies and force is not None:
        text = "may not be specified for non-apply patch"
        raise failures.invalid_options("PatchOptions", [forbidden_field("force", text)])


def read_applied(body: bytes) -> dict[str, Any]:
    """Read the object that is applied, from YAML or JSON.

    Raises:
        BadRequestError: If it cannot be read; the message has the place, not the data.
    """
    try:
        value = decode_json(body)
    except TooDeepError as error:
        raise failures.bad_request(f"error decoding YAML: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _read_yaml(body)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise failures.bad_request(
            f"error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{json_type(value)} into Go value of type map[string]interface {{}}"
        )
    fields = cast("dict[str, Any]", value)
    settle_numbers(fields)
    return fields


def _read_yaml(body: bytes) -> object:
    from deltaloop.api.yaml_reader import read_yaml

    try:
        # Through JSON, so that what JSON cannot say is refused here.
        return decode_json(msgspec.json.encode(read_yaml(body, source="the body of the request")))
    except (InvalidArgumentError, UnicodeDecodeError, TypeError, msgspec.MsgspecError) as error:
        raise failures.bad_request(f"error decoding YAML: {error}") from None
    except RecursionError:
        raise failures.bad_request(f"error decoding YAML: {TooDeepError()}") from None
