"""Forms of texts and addresses, and checks that several kinds share.

Source: Kubernetes pkg/apis/core/validation/validation.go (``validatePodIPs``, ``validateHostIPs``, ``ValidateNode``);
Kubernetes pkg/apis/core/validation/validation.go; apimachinery pkg/util/validation; Kubernetes
pkg/apis/core/validation/validation.go; apimachinery pkg/apis/meta/v1/validation; Kubernetes
pkg/apis/core/v1/conversion.go.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from deltaloop.api.dns_names import label_problems, label_value_problems, subdomain_problems
from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, string_map, text, texts
from deltaloop.apiserver.core.metadata.rules import (
    invalid_values,
    label_errors,
    label_name_errors,
    path_segment_errors,
    qualified_name_errors,
    subdomain_errors,
)
from deltaloop.schemas.checking import IMMUTABLE, Check, Place
from deltaloop.schemas.field_errors import (
    SchemaError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    shown,
    too_long,
)
from deltaloop.schemas.quantity import amount

_NO_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NO_NETWORK: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def address_family(value: str) -> int:
    try:
        return ipaddress.ip_address(value).version
    except ValueError:
        return 0


def network_family(value: str) -> int:
    """Return 4 or 6, or 0 for an invalid network in CIDR notation."""
    try:
        return ipaddress.ip_network(value, strict=False).version if "/" in value else 0
    except ValueError:
        return 0


def address_errors(values: Iterable[str], path: str, *, but: str = "") -> Iterator[SchemaError]:
    """Yield an error for each invalid address, except for the word ``but``."""
    for place, value in enumerate(values):
        if not but or value != but:
            yield from _address_errors(value, f"{path}[{place}]")


def why_no_address(value: str) -> str:
    """Return the reason why a text is not an address, or an empty string."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        shorter = ".".join(part.lstrip("0") or "0" for part in value.split(".")) if value else value
        return "must not have leading 0s" if address_family(shorter) == 4 else _NO_ADDRESS
    mapped = address.version == 6 and address.ipv4_mapped is not None
    return "must not be an IPv4-mapped IPv6 address" if mapped else ""


def network_errors(value: str, path: str) -> Iterator[SchemaError]:
    if not network_family(value):
        yield invalid_value(path, value, _NO_NETWORK)


def one_of_each_errors(families: list[int], path: str, listed: object, what: str) -> Iterator[SchemaError]:
    if len({*families}) < len(families):
        yield invalid_value(path, listed, f"may specify no more than one {what} for each IP family")


def address_warnings(address: str, field: str) -> Iterator[str]:
    if address_family(address) == 6 and str(ipaddress.ip_address(address)) != address:
        right = ipaddress.ip_address(address)
        yield f'{field}: IPv6 address "{address}" should be in RFC 5952 canonical format ("{right}")'


_LONGEST_DRIVER: Final = 63
_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_LONGEST_KEY: Final = 253
_KEY: Final = re.compile("[-._a-zA-Z0-9]+")
_SUBDOMAIN_WITH_UNDERSCORE: Final = re.compile(r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*")
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


def config_key_problems(key: str) -> Iterator[str]:
    if len(key) > _LONGEST_KEY:
        yield f"must be no more than {_LONGEST_KEY} characters"
    if not _KEY.fullmatch(key):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            f"'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY.pattern}')"
        )
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


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
    yield from _caseless_subdomain_errors(name, field)


def _caseless_subdomain_errors(name: str, field: str) -> Iterator[SchemaError]:
    return invalid_values(field, name, subdomain_problems(name.lower()))


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


def _search_errors(domain: str, field: str) -> Iterator[SchemaError]:
    name = domain.removesuffix(".")
    if domain != "." and (len(name) > _LONGEST_KEY or not _SUBDOMAIN_WITH_UNDERSCORE.fullmatch(name)):
        yield invalid_value(field, domain, "must be a domain name")


def _address_errors(value: str, field: str) -> Iterator[SchemaError]:
    why = why_no_address(value)
    if why:
        yield invalid_value(field, value, why)


def _text_check(problems: Callable[[str], Iterable[str]]) -> Check:
    return lambda place: invalid_values(place.path, place.text, problems(place.text))


def _of_text(check: Callable[[str, str], Iterable[SchemaError]]) -> Check:
    return lambda place: check(place.text, place.path)


def each_text(errors: Callable[[str, str], Iterator[SchemaError]]) -> Check:
    return lambda place: (
        error for number, value in enumerate(texts(place.value)) for error in errors(value, f"{place.path}[{number}]")
    )


def duplicate_errors(values: Sequence[object], path: str, below: str = "") -> Iterator[SchemaError]:
    """Yield an error for each value that is equal to an earlier one."""
    for number, value in enumerate(values):
        if value in values[:number]:
            yield duplicate(f"{path}[{number}]{below}", value)


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


def agree_on_first(part: dict[str, object], one: str, several: str, *, key: str = "") -> None:
    """Synchronize an old single-value field with the first item of its newer list field; a differing old value wins."""
    alone, found = part.get(one), items(part.get(several))
    first = at(found[0], key) if found and key else found[0] if found else None
    if alone and alone != first:
        part[several] = [{key: alone} if key else alone]
    elif first:
        part[one] = first


NOT_NEGATIVE: Final = "must be greater than or equal to 0"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_LAST_PORT: Final = 65_535
_LONGEST_PORT_NAME: Final = 15
_PORT_NAME: Final = re.compile("[-a-z0-9]+")
_PERCENT: Final = re.compile("[0-9]+%")
_EVERYTHING: Final = 100
_ordered: Final = msgspec.json.Encoder().encode


def each(holder: object, name: str, path: str = "") -> Iterator[tuple[str, dict[str, object]]]:
    below = f"{path}.{name}" if path else name
    for place, item in enumerate(items(at(holder, name))):
        yield f"{below}[{place}]", mapping(item)


def immutable(before: object, after: object, *names: str, path: str = "") -> Iterator[SchemaError]:
    for name in names:
        if at(before, name) != at(after, name):
            yield invalid_value(f"{path}.{name}" if path else name, at(after, name), IMMUTABLE)


def one_of(value: object, field: str, known: Iterable[str]) -> Iterator[SchemaError]:
    known = tuple(known)
    if value not in known:
        yield not_supported(field, text(value), known)


def port_errors(value: object, field: str) -> Iterator[SchemaError]:
    number = integer(value)
    if not 0 < number <= _LAST_PORT:
        yield invalid_value(field, number, f"must be between 1 and {_LAST_PORT}, inclusive")


def port_name_errors(value: object, field: str) -> Iterator[SchemaError]:
    name = text(value)
    problems = (
        (len(name) > _LONGEST_PORT_NAME, f"must be no more than {_LONGEST_PORT_NAME} characters"),
        (
            not _PORT_NAME.fullmatch(name),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (not any("a" <= sign <= "z" for sign in name), "must contain at least one letter (a-z)"),
        ("--" in name, "must not contain consecutive hyphens"),
        (name.startswith("-") or name.endswith("-"), "must not begin or end with a hyphen"),
    )
    yield from (invalid_value(field, name, problem) for found, problem in problems if found)


def port_or_name_errors(value: object, field: str) -> Iterator[SchemaError]:
    return port_name_errors(value, field) if isinstance(value, str) else port_errors(value, field)


def share_errors(value: object, field: str) -> Iterator[SchemaError]:
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        text_ = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
            f"used for validation is '{_PERCENT.pattern}')"
        )
        yield invalid_value(field, value, text_)
    elif isinstance(value, int) and value < 0:
        yield invalid_value(field, value, NOT_NEGATIVE)


def is_none(share: object) -> bool:
    """Return whether a share of pods is zero; an invalid text counts as zero."""
    digits = text(share).removesuffix("%") if isinstance(share, str) else str(integer(share))
    return not digits.isdecimal() or int(digits[:9]) == 0


def most_percent_errors(value: object, field: str) -> Iterator[SchemaError]:
    if isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:9].rstrip("%")) > _EVERYTHING:
        yield invalid_value(field, value, "must not be greater than 100%")


def shown_selector(selector: object) -> str:
    """Format a label selector with its fields in Go's order."""
    if not is_mapping(selector):
        return "null"
    parts = [f'"matchLabels":{shown(at(selector, "matchLabels"))}'] if at(selector, "matchLabels") else []
    expressions = [
        _ordered(
            {name: at(expression, name) for name in ("key", "operator", "values") if at(expression, name)}
        ).decode()
        for expression in items(at(selector, "matchExpressions"))
    ]
    if expressions:
        parts.append(f'"matchExpressions":[{",".join(expressions)}]')
    return f"{{{','.join(parts)}}}"


def selector_errors(selector: object, field: str) -> Iterator[SchemaError]:
    yield from _expression_errors(at(selector, "matchExpressions"), f"{field}.matchExpressions")
    yield from label_errors(string_map(at(selector, "matchLabels")), f"{field}.matchLabels")


def _expression_errors(expressions: object, field: str) -> Iterator[SchemaError]:
    for place, expression in enumerate(items(expressions)):
        operator, values = text(at(expression, "operator")), items(at(expression, "values"))
        path = f"{field}[{place}]"
        if operator not in _OPERATORS:
            yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
        elif operator in ("In", "NotIn") and not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            text_ = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden_field(f"{path}.values", text_)
        key = text(at(expression, "key"))
        yield from qualified_name_errors(key, f"{path}.key")
        for number, value in enumerate(texts(values)):
            yield from invalid_values(f"{path}.values[{number}]", value, label_value_problems(value))


def _untrimmed_errors(place: Place) -> Iterator[SchemaError]:
    """Yield an error for whitespace around the image of a pod. Templates can contain it."""
    if at(place.whole, "kind") == "Pod" and place.text != place.text.strip():
        yield invalid_value(place.path, place.value, "must not have leading or trailing whitespace")


def _of_value(check: Callable[[object, str], Iterable[SchemaError]]) -> Check:
    return lambda place: check(place.value, place.path)


CHECKS: Final[Mapping[str, Check]] = {
    "absolute_path": _text_check(_absolute_problems),
    "address": _of_text(_address_errors),
    "caseless_subdomain": _of_text(_caseless_subdomain_errors),
    "config_key": _text_check(config_key_problems),
    "descending_path": _text_check(descending_problems),
    "dns_label": _text_check(label_problems),
    "domain_path": _of_text(_domain_path_errors),
    "driver_name": _of_text(driver_name_errors),
    "each_address": each_text(_address_errors),
    "each_search": each_text(_search_errors),
    "each_subdomain": each_text(subdomain_errors),
    "label": _of_text(label_name_errors),
    "label_value": _text_check(label_value_problems),
    "labels": lambda place: label_errors(string_map(place.value), place.path),
    "local_path": _text_check(local_path_problems),
    "most_percent": _of_value(most_percent_errors),
    "named_reference": _named_errors,
    "network": _of_text(network_errors),
    "no_back_steps": _text_check(back_step_problems),
    "not_empty": _not_empty_errors,
    "not_empty_text": _not_empty_text_errors,
    "not_negative_amount": _not_negative_amount,
    "optional_label": _optional_label_errors,
    "path_segment": _of_text(path_segment_errors),
    "placed_reference": _placed_errors,
    "port_or_name": _of_value(port_or_name_errors),
    "positive_amount": _positive_amount,
    "qualified": _of_text(qualified_name_errors),
    "qualified_caseless": _of_text(lambda name, field: qualified_name_errors(name.lower(), field)),
    "secret_reference": _secret_reference_errors,
    "selector_expressions": _of_value(_expression_errors),
    "share": _of_value(share_errors),
    "signer_name": _of_text(signer_name_errors),
    "subdomain": _of_text(subdomain_errors),
    "sysctl": _text_check(_sysctl_problems),
    "trimmed": _untrimmed_errors,
    "unique": lambda place: duplicate_errors(items(place.value), place.path),
    "variable": _text_check(variable_name_problems),
}
