"""Validate DNS names and labels, and describe their faults.

Source: apimachinery pkg/util/validation and pkg/api/validate/content (``IsDNS1035Label``, ``IsDNS1123Label``,
``IsDNS1123Subdomain``, ``IsLabelKey``, ``IsLabelValue``).
"""

from __future__ import annotations

import re
from typing import Final

_LONGEST_LABEL: Final = 63
_LONGEST_SUBDOMAIN: Final = 253
_LABEL: Final = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NUMBERED_LABEL: Final = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_KEY: Final = re.compile("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
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
_NUMBERED_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    f"'{_NUMBERED_LABEL.pattern}')"
)
_KEY_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY.pattern}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'({_KEY.pattern})?')"
)


def label_problems(name: str) -> list[str]:
    """Return the faults of a name as a DNS label that starts with a letter."""
    problems = [] if len(name) <= _LONGEST_LABEL else [f"must be no more than {_LONGEST_LABEL} characters"]
    return problems if _LABEL.fullmatch(name) else [*problems, _LABEL_RULE]


def subdomain_problems(name: str, unit: str = "characters") -> list[str]:
    problems = [] if len(name) <= _LONGEST_SUBDOMAIN else [f"must be no more than {_LONGEST_SUBDOMAIN} {unit}"]
    return problems if _SUBDOMAIN.fullmatch(name) else [*problems, _SUBDOMAIN_RULE]


def is_qualified_name(name: str) -> bool:
    """Return whether a name has at most 63 characters, after an optional DNS subdomain and a slash."""
    prefix, slash, last = name.rpartition("/")
    return (not slash or not subdomain_problems(prefix)) and _QUALIFIED.fullmatch(last) is not None


def numbered_label_problems(name: str, unit: str = "characters") -> list[str]:
    """Return the faults of a name as a DNS label that can start with a digit."""
    problems = [] if len(name) <= _LONGEST_LABEL else [f"must be no more than {_LONGEST_LABEL} {unit}"]
    if _NUMBERED_LABEL.fullmatch(name):
        return problems
    return [*problems, "must not contain dots" if _SUBDOMAIN.fullmatch(name) else _NUMBERED_LABEL_RULE]


def label_key_problems(key: str) -> list[str]:
    """Return the faults of a label key: a name after an optional DNS subdomain and a slash."""
    prefix, slash, name = key.partition("/")
    if "/" in name:
        tail = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_KEY_RULE}{tail}"]
    if not slash:
        prefix, name = "", key
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += (f"prefix part {problem}" for problem in subdomain_problems(prefix, "bytes"))
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > _LONGEST_LABEL:
        problems.append(f"name part must be no more than {_LONGEST_LABEL} bytes")
    return problems if _KEY.fullmatch(name) else [*problems, f"name part {_KEY_RULE}"]


def label_value_problems(value: str) -> list[str]:
    problems = [] if len(value) <= _LONGEST_LABEL else [f"must be no more than {_LONGEST_LABEL} bytes"]
    return problems if not value or _KEY.fullmatch(value) else [*problems, _VALUE_RULE]
