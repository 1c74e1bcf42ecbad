"""The order of versions of an API: which one is preferred, and which one follows another.

Source: apimachinery pkg/version/helpers.go (``CompareKubeAwareVersionStrings``).
"""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def version_order(version: str) -> tuple[int, int, int, int, str]:
    """Return a sort key: stable before beta before alpha, higher numbers first, all other names last by alphabet."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, 0, version)
    return (0, _STABILITY[match[2]], -int(match[1]), -int(match[3] or 0), "")
