"""How long a webhook may take: a moment less than the API server waits, so that what it says is still heard."""

from __future__ import annotations

import re
from typing import Final

_SECONDS: Final = re.compile(r"([0-9]{1,4})s")
_SHARE: Final = 0.1
_MOST: Final = 0.5
CONVERSION_SECONDS: Final = 30.0
"""How long API servers wait for conversions; no definition says otherwise."""


def time_limit(asked: str, declared: float) -> float:
    """Return within how many seconds of a request's arrival there has to be an answer.

    Args:
        asked: What the request's URL says in ``timeout``, such as ``10s``; what means nothing counts as unsaid.
        declared: Seconds that the configuration says.

    Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go (``Timeout`` of the request).
    """
    found = _SECONDS.fullmatch(asked)
    waits = min(declared, float(found[1])) if found and int(found[1]) else declared
    return waits - min(_MOST, waits * _SHARE)
