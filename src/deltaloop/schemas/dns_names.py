"""Names that a domain name could have: what is wrong with one, in words.

Source: apimachinery pkg/util/validation (``IsDNS1035Label``, ``IsDNS1123Subdomain``, ``IsQualifiedName``).
"""

from __future__ import annotations

import re
from typing import Final

_LONGEST_LABEL: Final = 63
_LONGEST_SUBDOMAIN: Final = 253
_LABEL: Final = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED: Final = re.compile("[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_LABEL.pattern}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN.pattern}')"
)


def label_problems(name: str) -> list[str]:
    """Return what keeps a name from being a DNS label that starts with a letter."""
    problems = [] if len(name) <= _LONGEST_LABEL else [f"must be no more than {_LONGEST_LABEL} characters"]
    return problems if _LABEL.fullmatch(name) else [*problems, _LABEL_RULE]


def subdomain_problems(name: str) -> list[str]:
    """Return what keeps a name from being a DNS subdomain."""
    problems = [] if len(name) <= _LONGEST_SUBDOMAIN else [f"must be no more than {_LONGEST_SUBDOMAIN} characters"]
    return problems if _SUBDOMAIN.fullmatch(name) else [*problems, _SUBDOMAIN_RULE]


def is_qualified_name(name: str) -> bool:
    """Tell whether a name is one of 63 characters at most, with or without a DNS subdomain and a slash before it."""
    prefix, slash, last = name.rpartition("/")
    return (not slash or not subdomain_problems(prefix)) and _QUALIFIED.fullmatch(last) is not None
