"""What is applied, as it is sent: read from YAML or JSON.

Source: apiserver pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import json_type
from deltaloop.api.json_writing import is_other_yaml
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.crds.stored_numbers import settle_numbers
from deltaloop.schemas.decoding import duplicate_field_texts
from deltaloop.schemas.nesting import TooDeepError, decode_json

APPLY_PATCH: Final = "application/apply-patch+yaml"


def read_applied(body: bytes) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read the object that is applied, from YAML; return it, and a sentence for each key that comes twice in a map.

    What is JSON is read so, which takes a sixth of the time, if it means the same.

    Raises:
        BadRequestError: If it cannot be read; the message has the place, not the data.
    """
    repeated: list[str] = []
    try:
        value = decode_json(body)
        if is_other_yaml(body) or duplicate_field_texts(body):
            value = _read_yaml(body, repeated)
    except TooDeepError as error:
        raise failures.bad_request(f"error decoding patch: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _read_yaml(body, repeated)
    if value is None:
        return {}, ()
    if not isinstance(value, dict):
        raise failures.bad_request(
            f"error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{json_type(value)} into Go value of type map[string]interface {{}}"
        )
    fields = cast("dict[str, Any]", value)
    settle_numbers(fields)
    return fields, tuple(repeated)


def _read_yaml(body: bytes, repeated: list[str]) -> object:
    from deltaloop.api.yaml_reader import read_yaml_body

    try:
        # Through JSON, so that what JSON cannot say is refused here.
        return decode_json(
            msgspec.json.encode(read_yaml_body(body, source="the body of the request", repeated=repeated))
        )
    except (InvalidArgumentError, UnicodeDecodeError, TypeError, msgspec.MsgspecError) as error:
        raise failures.bad_request(f"error decoding patch: error converting YAML to JSON: {error}") from None
    except RecursionError:
        raise failures.bad_request(f"error decoding patch: {TooDeepError()}") from None
