"""Ingresses and network policies.

Source: Kubernetes pkg/apis/networking/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any, Final

from deltaloop.apiserver.core.kinds.validation.checks import one_of, port_errors, port_name_errors, shown
from deltaloop.apiserver.core.metadata.rules import label_name_errors, subdomain_errors
from deltaloop.schemas.faults import FieldError, invalid_value, required
from deltaloop.schemas.json_values import at, integer, is_mapping, items, mapping, text, texts

Fields = dict[str, Any]

_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_FORBIDDEN_PARTS: Final = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS: Final = ("/..", "/.")
_WILDCARD: Final = re.compile(r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NO_NETWORK: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def ingress_errors(ingress: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with an Ingress; secret names are not looked at."""
    spec = mapping(ingress.get("spec"))
    if not items(spec.get("rules")) and spec.get("defaultBackend") is None:
        yield invalid_value("spec", "null", "either `defaultBackend` or `rules` must be specified")
    if isinstance(spec.get("defaultBackend"), dict):
        yield from _backend_errors(mapping(spec["defaultBackend"]), "spec.defaultBackend")
    for place, rule in enumerate(items(spec.get("rules"))):
        where = f"spec.rules[{place}]"
        yield from _host_errors(text(at(rule, "host")), f"{where}.host")
        for number, path in enumerate(items(at(rule, "http", "paths"))):
            yield from _path_errors(mapping(path), f"{where}.http.paths[{number}]")


def _host_errors(host: str, field: str) -> Iterator[FieldError]:
    if not host:
        return
    if _is_network(host, single=True):
        yield invalid_value(field, shown(host), "must be a DNS name, not an IP address")
    if "*" not in host:
        yield from subdomain_errors(host, field)
    elif not _WILDCARD.fullmatch(host):
        text_ = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
            "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. "
            f"'*.example.com', regex used for validation is '{_WILDCARD.pattern}')"
        )
        yield invalid_value(field, shown(host), text_)


def _path_errors(path: Fields, where: str) -> Iterator[FieldError]:
    kind, value = path.get("pathType"), text(path.get("path"))
    if kind is None:
        yield required(f"{where}.pathType", "pathType must be specified")
        return
    yield from one_of(kind, f"{where}.pathType", _PATH_TYPES)
    if kind in _PATH_TYPES and not value.startswith("/") and (value or kind != "ImplementationSpecific"):
        yield invalid_value(f"{where}.path", shown(value), "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        for part in _FORBIDDEN_PARTS:
            if part in value:
                yield invalid_value(f"{where}.path", shown(value), f"must not contain '{part}'")
        for end in _FORBIDDEN_ENDS:
            if value.endswith(end):
                yield invalid_value(f"{where}.path", shown(value), f"cannot end with '{end}'")
    yield from _backend_errors(mapping(path.get("backend")), f"{where}.backend")


def _backend_errors(backend: Fields, where: str) -> Iterator[FieldError]:
    service = backend.get("service")
    if isinstance(backend.get("resource"), dict):
        if isinstance(service, dict):
            yield invalid_value(where, '""', "cannot set both resource and service backends")
        return
    if not is_mapping(service):
        yield invalid_value(where, '""', "resource or service backend is required")
        return
    service_name, port = text(at(service, "name")), mapping(at(service, "port"))
    if service_name:
        yield from label_name_errors(service_name, f"{where}.service.name")
    else:
        yield required(f"{where}.service.name")
    if port.get("name") and port.get("number"):
        yield invalid_value(where, '""', "cannot set both port name & port number")
    elif port.get("name"):
        yield from port_name_errors(port["name"], f"{where}.service.port.name")
    elif port.get("number"):
        yield from port_errors(port["number"], f"{where}.service.port.number")
    else:
        yield required(where, "port name or number is required")


def network_policy_errors(policy: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a NetworkPolicy; its selectors are not looked at."""
    spec = mapping(policy.get("spec"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for place, rule in enumerate(items(spec.get(direction))):
            where = f"spec.{direction}[{place}]"
            for number, port in enumerate(items(at(rule, "ports"))):
                yield from _policy_port_errors(mapping(port), f"{where}.ports[{number}]")
            for number, peer in enumerate(items(at(rule, peers))):
                network = at(peer, "ipBlock", "cidr")
                if network is not None and not _is_network(text(network)):
                    yield invalid_value(f"{where}.{peers}[{number}].ipBlock.cidr", shown(network), _NO_NETWORK)
    for place, name in enumerate(texts(spec.get("policyTypes"))):
        yield from one_of(name, f"spec.policyTypes[{place}]", ("Ingress", "Egress"))


def _policy_port_errors(port: Fields, where: str) -> Iterator[FieldError]:
    value, end = port.get("port"), port.get("endPort")
    if port.get("protocol") is not None:
        yield from one_of(port["protocol"], f"{where}.protocol", _PROTOCOLS)
    if isinstance(value, str):
        yield from port_name_errors(value, f"{where}.port")
    elif value is not None:
        yield from port_errors(value, f"{where}.port")
    if end is None:
        return
    if value is None:
        yield invalid_value(f"{where}.endPort", str(end), "may not be specified when `port` is not specified")
    elif isinstance(value, str):
        yield invalid_value(f"{where}.endPort", str(end), "may not be specified when `port` is non-numeric")
    else:
        if integer(end) < integer(value):
            yield invalid_value(f"{where}.endPort", str(value), "must be greater than or equal to `port`")
        yield from port_errors(end, f"{where}.endPort")


def _is_network(value: str, *, single: bool = False) -> bool:
    """Tell whether text is a network with its length, or, if ``single``, an address."""
    if not single and "/" not in value:
        return False
    try:
        _ = ipaddress.ip_address(value) if single else ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return True
