"""What is applied, as it is sent: read from YAML or JSON.

Source: apiserver pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.crds.stored_numbers import settle_numbers
from deltaloop.schemas.json_values import json_type
from deltaloop.schemas.nesting import TooDeepError, decode_json

APPLY_PATCH: Final = "application/apply-patch+yaml"


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
