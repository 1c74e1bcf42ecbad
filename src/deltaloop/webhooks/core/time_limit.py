"""Time limit of a webhook, which ends shortly before the API server's timeout so that the response still arrives."""

from __future__ import annotations

import re
from typing import Final

_SECONDS: Final = re.compile(r"([0-9]{1,4})s")
_SHARE: Final = 0.1
_MOST: Final = 0.5
CONVERSION_SECONDS: Final = 30.0
"""Timeout of API servers for conversions in seconds, which definitions cannot change."""


def time_limit(asked: str, declared: float) -> float:
    """Return the seconds in which a request must be completed; invalid ``timeout`` values of the URL are ignored."""
    found = _SECONDS.fullmatch(asked)
    waits = min(declared, float(found[1])) if found and int(found[1]) else declared
    return waits - min(_MOST, waits * _SHARE)
