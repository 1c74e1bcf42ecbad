"""Compare resource versions.

Since Kubernetes 1.35, they are decimal numbers of at most 128 bits, without sign and leading zeros (KEP-5504).
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.errors import InvalidResourceVersionError

VERSION_LIMIT: Final = 2**128


def version_number(resource_version: str) -> int:
    """Return a resource version as a number, or -1 if it is not comparable, including "" and "0" in requests."""
    if not resource_version:
        return -1
    try:
        number = int(resource_version)
    except ValueError:
        return -1
    return number if 0 < number < VERSION_LIMIT and f"{number}" == resource_version else -1


def compare_resource_versions(left: str, right: str) -> int:
    """Return -1, 0 or 1 if ``left`` is older than, equal to or newer than ``right``.

    You can only compare versions of one resource type on one server.

    Raises:
        InvalidResourceVersionError: If a version is not comparable. You can then only compare the strings for equality.
    """
    a, b = version_number(left), version_number(right)
    if a < 0 or b < 0:
        raise InvalidResourceVersionError(left if a < 0 else right)
    return (a > b) - (a < b)


def is_comparable(resource_version: str) -> bool:
    return version_number(resource_version) > 0


def is_newer(left: str, right: str) -> bool:
    """Return whether both versions are comparable and ``left`` is newer than ``right``."""
    return version_number(left) > version_number(right) > 0
