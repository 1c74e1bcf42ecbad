"""Ingress: its rules and their backends; names of secrets are not looked at.

Source: Kubernetes pkg/apis/networking/validation/validation.go; pkg/registry/networking/ingress/strategy.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.addresses import address_family
from deltaloop.apiserver.core.kinds.cells import NONE, load_balancer_addresses, text_at
from deltaloop.apiserver.core.kinds.field_checks import each, named, one_of, port_errors, port_name_errors, shown
from deltaloop.apiserver.core.metadata.rules import label_name_errors, subdomain_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.faults import FieldError, invalid_value, required
from deltaloop.schemas.json_values import at, is_mapping, items, mapping, text

_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_PARTS: Final = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS: Final = ("/..", "/.")
_WILDCARD: Final = re.compile(r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_CLASS: Final = "kubernetes.io/ingress.class"


def _errors(ingress: Mapping[str, object]) -> Iterator[FieldError]:
    spec = mapping(ingress.get("spec"))
    default = spec.get("defaultBackend")
    if not items(spec.get("rules")) and default is None:
        yield invalid_value("spec", "null", "either `defaultBackend` or `rules` must be specified")
    if is_mapping(default):
        yield from _backend_errors(default, "spec.defaultBackend")
    for where, rule in each(spec, "rules", "spec"):
        yield from _host_errors(text(rule.get("host")), f"{where}.host")
        for field, path in each(rule.get("http"), "paths", f"{where}.http"):
            yield from _path_errors(path, field)


def _host_errors(host: str, field: str) -> Iterator[FieldError]:
    if not host:
        return
    if address_family(host):
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


def _path_errors(path: Mapping[str, object], where: str) -> Iterator[FieldError]:
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


def _backend_errors(backend: Mapping[str, object], where: str) -> Iterator[FieldError]:
    service = backend.get("service")
    if is_mapping(backend.get("resource")):
        if is_mapping(service):
            yield invalid_value(where, '""', "cannot set both resource and service backends")
        return
    if not is_mapping(service):
        yield invalid_value(where, '""', "resource or service backend is required")
        return
    port, path = mapping(service.get("port")), f"{where}.service"
    yield from named(service, path, label_name_errors)
    if port.get("name") and port.get("number"):
        yield invalid_value(where, '""', "cannot set both port name & port number")
    elif port.get("name"):
        yield from port_name_errors(port["name"], f"{path}.port.name")
    elif port.get("number"):
        yield from port_errors(port["number"], f"{path}.port.number")
    else:
        yield required(where, "port name or number is required")


def _new_warnings(ingress: Mapping[str, object]) -> Iterator[str]:
    annotated = at(ingress, "metadata", "annotations", _CLASS) is not None
    if annotated and at(ingress, "spec", "ingressClassName") is None:
        yield f"annotation \"{_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"


def _hosts(ingress: Mapping[str, object]) -> str:
    """Write the first three hosts; rules without one are not shown, but count if a rule comes after three hosts."""
    hosts = [text(at(rule, "host")) for rule in items(at(ingress, "spec", "rules"))]
    named_hosts = [host for host in hosts if host]
    third = [place for place, host in enumerate(hosts) if host][2:3]
    more = f" + {len(hosts) - 3} more..." if third and len(hosts) > third[0] + 1 else ""
    return ",".join(named_hosts[:3]) + more if named_hosts else "*"


STRATEGY: Final = Strategy(
    validate=_errors,
    warn_new=_new_warnings,
    cells={
        "Class": text_at("spec.ingressClassName", NONE),
        "Hosts": _hosts,
        "Address": lambda ingress: ",".join(load_balancer_addresses(ingress)),
        "Ports": lambda ingress: "80, 443" if items(at(ingress, "spec", "tls")) else "80",
    },
)
