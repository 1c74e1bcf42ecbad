"""Checks of names and URLs in options, before a server rejects them repeatedly."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from deltaloop.api.dns_names import numbered_label_problems, subdomain_problems
from deltaloop.api.errors import InvalidArgumentError

NAMESPACE_RULE: Final = "the name of a namespace (at most 63 lower-case letters, digits and inner '-')"
NAME_RULE: Final = "the name of an object (at most 253 lower-case letters, digits, and inner '-' and '.')"
WEBHOOK_URL_RULE: Final = "https://HOST:PORT"


def is_namespace(name: str) -> bool:
    return not numbered_label_problems(name)


def is_name(name: str) -> bool:
    return not subdomain_problems(name)


def is_webhook_url(url: str) -> bool:
    """Return whether an API server can call webhooks at this URL."""
    parts = urlsplit(url)
    return parts.scheme == "https" and bool(parts.hostname) and not (parts.query or parts.fragment or parts.username)


def check_namespace(option: str, name: str) -> None:
    """Reject names that are invalid for namespaces by InvalidArgumentError. An empty name is valid."""
    if name and not is_namespace(name):
        raise InvalidArgumentError(f"must be {NAMESPACE_RULE}, got {name!r}.", argument=option)


def check_name(option: str, name: str) -> None:
    """Reject names that are invalid for objects by InvalidArgumentError."""
    if not is_name(name):
        raise InvalidArgumentError(f"must be {NAME_RULE}, got {name!r}.", argument=option)
