"""The numbers of a custom resource as they are stored: a float that is whole becomes an integer.

Source: apimachinery pkg/util/json; encoding/json.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, Final, cast

from deltaloop.apiserver.core import status_errors
from deltaloop.schemas.go_numbers import Number, as_sent

_INT64: Final = 2**63
_WRITTEN_OUT: Final = 10.0**21


def settle_numbers(fields: dict[str, Any]) -> None:
    """Write the numbers of an object, in place, as they are stored.

    Raises:
        BadRequestError: If there is one that is larger than any float.
    """
    waiting: list[Any] = [fields]
    while waiting:
        holder = waiting.pop()
        found = cast("Any", holder.items() if isinstance(holder, dict) else enumerate(holder))
        changed: list[tuple[Any, Any]] = []
        for place, value in found:
            if isinstance(value, dict | list):
                waiting.append(value)
            elif isinstance(value, float) or (isinstance(value, int) and not -_INT64 <= value < _INT64):
                changed.append((place, stored_number(value)))
        for place, value in changed:
            holder[place] = value


def stored_number(value: Number) -> Number:
    """Return a number as it is stored: a float that is whole as an integer.

    Raises:
        BadRequestError: If it is larger than any float.
    """
    number = float(as_sent(value)) if isinstance(value, int) else value
    if math.isinf(number):
        words = "json: cannot unmarshal number into Go value of type float64"
        raise status_errors.bad_request(words)
    if number.is_integer() and abs(number) < _WRITTEN_OUT:
        return int(Decimal(repr(number)))
    return number
