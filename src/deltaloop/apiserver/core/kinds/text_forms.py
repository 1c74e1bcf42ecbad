"""Checks of the format of strings, amounts and lists for the rules of all kinds.

Source: Kubernetes pkg/apis/core/validation/validation.go; apimachinery pkg/util/validation.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from deltaloop.api.dns_names import label_key_problems, label_problems
from deltaloop.api.json_values import items, text, texts
from deltaloop.apiserver.core.kinds.addresses import why_no_address
from deltaloop.apiserver.core.metadata.rules import (
    label_name_errors,
    label_value_problems,
    path_segment_errors,
    qualified_name_errors,
    subdomain_errors,
)
from deltaloop.schemas.checking import Check, Place
from deltaloop.schemas.field_errors import SchemaError, duplicate, invalid_value, required, too_long
from deltaloop.schemas.quantity import amount

_LONGEST_DRIVER: Final = 63
_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_LONGEST_KEY: Final = 253
_KEY: Final = re.compile("[-._a-zA-Z0-9]+")
_SUBDOMAIN_WITH_UNDERSCORE: Final = re.compile(r"[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*")
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_SIGNER_PATH: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LINK_LOCAL_MULTICAST: Final = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))


def descending_problems(path: str) -> tuple[str, ...]:
    """Return the reasons why a path is not relative or leaves its directory."""
    absolute = ("must be a relative path",) if path.startswith("/") else ()
    return (*absolute, *back_step_problems(path))


def back_step_problems(path: str) -> tuple[str, ...]:
    """Return the reason why a path contains a backward step, if it does."""
    return ("must not contain '..'",) if ".." in path.split("/") else ()


def local_path_problems(path: str) -> tuple[str, ...]:
    """Return the reasons why a path cannot be a file in a volume with projected content."""
    reserved = path.startswith("..") and not path.startswith("../")
    return (*descending_problems(path), *(("must not start with '..'",) if reserved else ()))


def variable_name_problems(name: str) -> tuple[str, ...]:
    if name and "=" not in name and name.isascii() and name.isprintable():
        return ()
    return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)


def config_key_problems(key: str) -> tuple[str, ...]:
    long = (f"must be no more than {_LONGEST_KEY} bytes",) if len(key) > _LONGEST_KEY else ()
    if not _KEY.fullmatch(key):
        return (*long, "a valid config key must consist of alphanumeric characters, '-', '_' or '.'")
    if key.startswith(".."):
        return (*long, "must not be '..'" if key == ".." else "must not start with '..'")
    return (*long, "must not be '.'") if key == "." else long


def endpoint_address_problems(value: str) -> tuple[str, ...]:
    address = _address(value)
    if address is None:
        return ("must be a valid IP address",)
    return tuple(
        problem
        for found, problem in (
            (address.is_unspecified, f"may not be unspecified ({value})"),
            (address.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
            (address.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            (
                any(address in network for network in _LINK_LOCAL_MULTICAST),
                "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
            ),
        )
        if found
    )


def _address(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None


def driver_name_errors(name: str, field: str) -> Iterator[SchemaError]:
    if not name:
        yield required(field)
        return
    if len(name) > _LONGEST_DRIVER:
        yield too_long(field, _LONGEST_DRIVER)
    yield from subdomain_errors(name.lower(), field)


def signer_name_errors(name: str, field: str) -> Iterator[SchemaError]:
    """Yield the errors in a signer name, which is a domain and a path separated by a slash."""
    if not name:
        yield required(field)
        return
    domain, *rest = name.split("/")
    if len(rest) != 1 or len(domain.split(".")) < 2 or any(subdomain_errors(domain, field)):
        yield invalid_value(field, name, 'must be a fully qualified domain and path of the form "example.com/a"')
    elif not _SIGNER_PATH.fullmatch(rest[0]) or len(name) > 571:
        yield invalid_value(field, name, "must be a valid path of a signer")


def _label_key_errors(key: str, field: str) -> Iterator[SchemaError]:
    yield from (invalid_value(field, key, problem) for problem in label_key_problems(key))


def _search_errors(domain: str, field: str) -> Iterator[SchemaError]:
    if domain != "." and not _SUBDOMAIN_WITH_UNDERSCORE.fullmatch(domain.removesuffix(".")):
        yield invalid_value(field, domain, "must be a domain name")


def _address_errors(value: str, field: str) -> Iterator[SchemaError]:
    why = why_no_address(value)
    if why:
        yield invalid_value(field, value, why)


def _text_check(problems: Callable[[str], tuple[str, ...]]) -> Check:
    def check(place: Place) -> Iterator[SchemaError]:
        return (invalid_value(place.path, place.value, problem) for problem in problems(place.text))

    return check


def _errors_check(errors: Callable[[str, str], Iterator[SchemaError]]) -> Check:
    return lambda place: errors(place.text, place.path)


def each_text(errors: Callable[[str, str], Iterator[SchemaError]]) -> Check:
    return lambda place: (
        error for number, value in enumerate(texts(place.value)) for error in errors(value, f"{place.path}[{number}]")
    )


def _unique_errors(place: Place) -> Iterator[SchemaError]:
    values = items(place.value)
    for number, value in enumerate(values):
        if value in values[:number]:
            yield duplicate(f"{place.path}[{number}]", value)


def _positive_amount(place: Place) -> Iterator[SchemaError]:
    if amount(place.value) <= 0:
        yield invalid_value(place.path, place.value, "must be positive")


def _not_negative_amount(place: Place) -> Iterator[SchemaError]:
    if amount(place.value) < 0:
        yield invalid_value(place.path, place.value, "must be greater than or equal to 0")


def _absolute_problems(path: str) -> tuple[str, ...]:
    return () if path.startswith("/") else ("must be an absolute path",)


def _sysctl_problems(name: str) -> tuple[str, ...]:
    return () if len(name) <= _LONGEST_KEY and _SYSCTL.fullmatch(name) else ("must be the name of a sysctl",)


def _named_errors(place: Place) -> Iterator[SchemaError]:
    if not place.fields.get("name"):
        yield required(place.below("name"))


def _placed_errors(place: Place) -> Iterator[SchemaError]:
    if not place.fields.get("namespace"):
        yield required(place.below("namespace"))


def _secret_reference_errors(place: Place) -> Iterator[SchemaError]:
    for name, errors in (("name", subdomain_errors), ("namespace", label_name_errors)):
        value, path = text(place.fields.get(name)), place.below(name)
        yield from errors(value, path) if value else (required(path),)


def _optional_label_errors(place: Place) -> Iterator[SchemaError]:
    if place.value:
        yield from label_name_errors(place.text, place.path)


def _not_empty_errors(place: Place) -> Iterator[SchemaError]:
    if not place.value:
        yield required(place.path)


def _not_empty_text_errors(place: Place) -> Iterator[SchemaError]:
    if not place.value:
        yield invalid_value(place.path, "", "cannot be an empty string")


def _domain_path_errors(value: str, field: str) -> Iterator[SchemaError]:
    domain, _, path = value.partition("/")
    if not value:
        yield required(field)
    elif not domain or not path:
        yield invalid_value(field, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from subdomain_errors(domain, field)
        if not _PATH.fullmatch(path):
            yield invalid_value(field, path, f"Invalid path (regex used for validation is '{_PATH.pattern}')")


FORMS: Final[Mapping[str, Check]] = {
    "absolute_path": _text_check(_absolute_problems),
    "address": _errors_check(_address_errors),
    "caseless_subdomain": _errors_check(lambda name, field: subdomain_errors(name.lower(), field)),
    "config_key": _text_check(config_key_problems),
    "descending_path": _text_check(descending_problems),
    "dns_label": _text_check(lambda name: tuple(label_problems(name))),
    "domain_path": _errors_check(_domain_path_errors),
    "driver_name": _errors_check(driver_name_errors),
    "each_address": each_text(_address_errors),
    "each_search": each_text(_search_errors),
    "each_subdomain": each_text(subdomain_errors),
    "label_key": _errors_check(_label_key_errors),
    "label_value": _text_check(label_value_problems),
    "local_path": _text_check(local_path_problems),
    "named_reference": _named_errors,
    "no_back_steps": _text_check(back_step_problems),
    "not_empty": _not_empty_errors,
    "not_empty_text": _not_empty_text_errors,
    "not_negative_amount": _not_negative_amount,
    "optional_label": _optional_label_errors,
    "path_segment": _errors_check(path_segment_errors),
    "placed_reference": _placed_errors,
    "positive_amount": _positive_amount,
    "qualified": _errors_check(qualified_name_errors),
    "qualified_caseless": _errors_check(lambda name, field: qualified_name_errors(name.lower(), field)),
    "secret_reference": _secret_reference_errors,
    "signer_name": _errors_check(signer_name_errors),
    "sysctl": _text_check(_sysctl_problems),
    "unique": _unique_errors,
    "variable": _text_check(variable_name_problems),
}
