"""Says what is wrong with a name that was given by a flag, before a server refuses it again and again.

Source: apimachinery pkg/util/validation ``IsDNS1123Label``, ``IsDNS1123Subdomain``.
"""

from __future__ import annotations

import re
from typing import Final

from deltaloop.api.errors import InvalidArgumentError

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def check_namespace(flag: str, name: str) -> None:
    """Refuse what is no name of a namespace; empty is fine.

    Raises:
        InvalidArgumentError: Naming the flag.
    """
    if name and (len(name) > 63 or not _LABEL.fullmatch(name)):
        raise InvalidArgumentError(
            f"{flag} {name!r} is no name of a namespace: at most 63 lower-case letters, digits and inner '-'"
        )


def check_name(flag: str, name: str) -> None:
    """Refuse what is no name of an object.

    Raises:
        InvalidArgumentError: Naming the flag.
    """
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        raise InvalidArgumentError(
            f"{flag} {name!r} is no name of an object: at most 253 lower-case letters, digits, and '-' and '.' inside"
        )
