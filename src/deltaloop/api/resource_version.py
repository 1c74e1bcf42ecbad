"""Resource versions: how far an object or a list has come.

They are opaque strings by old contract and, since Kubernetes 1.35, decimal numbers that can be compared (KEP-5504): no
sign, no leading zero, at most 128 bits. Servers outside that contract exist, so every comparison can fail, and callers
fall back to equality.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.errors import InvalidResourceVersionError

VERSION_LIMIT: Final = 2**128


def version_number(resource_version: str) -> int:
    """Return a resource version as a number; -1 if it is not comparable, as "" and "0", which are requests."""
    if not resource_version:
        return -1
    try:
        number = int(resource_version)
    except ValueError:
        return -1
    return number if 0 < number < VERSION_LIMIT and f"{number}" == resource_version else -1


def compare_resource_versions(left: str, right: str) -> int:
    """Return -1, 0 or 1 as ``left`` is older than, the same as or newer than ``right``.

    Only versions of one resource type on one server may be compared.

    Raises:
        InvalidResourceVersionError: If either is not comparable; equality of the strings is all that is left then.
    """
    a, b = version_number(left), version_number(right)
    if a < 0 or b < 0:
        raise InvalidResourceVersionError(left if a < 0 else right)
    return (a > b) - (a < b)


def is_comparable(resource_version: str) -> bool:
    """Tell whether a resource version follows KEP-5504."""
    return version_number(resource_version) > 0


def is_newer(left: str, right: str) -> bool:
    """Tell whether ``left`` is known to be newer than ``right``: both are comparable, and it is."""
    return version_number(left) > version_number(right) > 0
