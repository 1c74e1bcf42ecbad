"""Checks of names given as options, which a server would reject again and again."""

from __future__ import annotations

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.schemas.dns_names import numbered_label_problems, subdomain_problems

NAMESPACE_RULE = "the name of a namespace (at most 63 lower-case letters, digits and inner '-')"
NAME_RULE = "the name of an object (at most 253 lower-case letters, digits, and inner '-' and '.')"


def check_namespace(option: str, name: str) -> None:
    """Reject names that no namespace can have. An empty name is valid.

    Raises:
        InvalidArgumentError: With the name of the option.
    """
    if name and numbered_label_problems(name):
        raise InvalidArgumentError(f"{option} must be {NAMESPACE_RULE}, got {name!r}.")


def check_name(option: str, name: str) -> None:
    """Reject names that no object can have.

    Raises:
        InvalidArgumentError: With the name of the option.
    """
    if subdomain_problems(name):
        raise InvalidArgumentError(f"{option} must be {NAME_RULE}, got {name!r}.")
