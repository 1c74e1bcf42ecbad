"""Resource versions: how far an object or a list has come.

They are opaque strings by old contract and, since Kubernetes 1.35, decimal numbers that can be compared (KEP-5504): no
sign, no leading zero, at most 128 bits. Servers outside that contract exist, so every comparison can fail, and callers
have a fallback: equality.
"""

from __future__ import annotations

from functools import lru_cache

from deltaloop.api.errors import InvalidResourceVersionError

_MAX_DIGITS = len(str(2**128 - 1))


@lru_cache(maxsize=1024)
def parse_resource_version(resource_version: str) -> int:
    """Return a resource version as a number.

    Raises:
        InvalidResourceVersionError: If it is not comparable; "" and "0" are not, they are requests, not versions.

    Source: KEP-5504, apimachinery pkg/util/resourceversion.
    """
    if (
        not resource_version
        or not (resource_version.isascii() and resource_version.isdigit())
        or resource_version[0] == "0"
        or len(resource_version) > _MAX_DIGITS
    ):
        raise InvalidResourceVersionError(resource_version)
    number = int(resource_version)
    if number >= 2**128:
        raise InvalidResourceVersionError(resource_version)
    return number


def compare_resource_versions(left: str, right: str) -> int:
    """Return -1, 0 or 1 as ``left`` is older than, the same as or newer than ``right``.

    Only versions of one resource type on one server may be compared.

    Raises:
        InvalidResourceVersionError: If either is not comparable; equality of the strings is all that is left then.
    """
    a, b = parse_resource_version(left), parse_resource_version(right)
    return (a > b) - (a < b)


def is_comparable(resource_version: str) -> bool:
    """Tell whether a resource version follows KEP-5504."""
    try:
        parse_resource_version(resource_version)
    except InvalidResourceVersionError:
        return False
    return True


def is_newer(left: str, right: str) -> bool:
    """Tell whether ``left`` is known to be newer than ``right``: both are comparable, and it is."""
    return is_comparable(left) and is_comparable(right) and compare_resource_versions(left, right) > 0
