"""Rules for names and URLs given as options, which a server would reject again and again."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from deltaloop.api.dns_names import numbered_label_problems, subdomain_problems
from deltaloop.api.errors import InvalidArgumentError

NAMESPACE_RULE: Final = "the name of a namespace (at most 63 lower-case letters, digits and inner '-')"
NAME_RULE: Final = "the name of an object (at most 253 lower-case letters, digits, and inner '-' and '.')"
WEBHOOK_URL_RULE: Final = "https://HOST:PORT"


def is_namespace(name: str) -> bool:
    """Tell whether a namespace can have a name."""
    return not numbered_label_problems(name)


def is_name(name: str) -> bool:
    """Tell whether an object can have a name."""
    return not subdomain_problems(name)


def is_webhook_url(url: str) -> bool:
    """Tell whether an API server can call webhooks at a URL."""
    parts = urlsplit(url)
    return parts.scheme == "https" and bool(parts.hostname) and not (parts.query or parts.fragment or parts.username)


def check_namespace(option: str, name: str) -> None:
    """Reject names that no namespace can have. An empty name is valid.

    Raises:
        InvalidArgumentError: With the name of the option.
    """
    if name and not is_namespace(name):
        raise InvalidArgumentError(f"{option} must be {NAMESPACE_RULE}, got {name!r}.")


def check_name(option: str, name: str) -> None:
    """Reject names that no object can have.

    Raises:
        InvalidArgumentError: With the name of the option.
    """
    if not is_name(name):
        raise InvalidArgumentError(f"{option} must be {NAME_RULE}, got {name!r}.")
