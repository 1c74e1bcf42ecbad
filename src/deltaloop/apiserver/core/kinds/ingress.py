"""Ingress and IngressClass.

Source: Kubernetes pkg/apis/networking/validation/validation.go; pkg/registry/networking/ingress/strategy.go;
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, is_mapping, items, mapping, text, texts
from deltaloop.apiserver.core.kinds.addresses import address_family
from deltaloop.apiserver.core.kinds.cells import NONE, load_balancer_addresses, marked_default
from deltaloop.apiserver.core.kinds.field_checks import one_of, port_errors, port_name_errors
from deltaloop.apiserver.core.kinds.ip_address import load_balancer_warnings
from deltaloop.apiserver.core.metadata.rules import label_name_errors, path_segment_errors, subdomain_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, required

_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_PARTS: Final = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_ENDS: Final = ("/..", "/.")
_WILDCARD: Final = re.compile(r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_CLASS: Final = "kubernetes.io/ingress.class"


def _rules_errors(place: Place) -> Iterator[SchemaError]:
    if not items(place.fields.get("rules")) and place.fields.get("defaultBackend") is None:
        yield invalid_value(place.path, None, "either `defaultBackend` or `rules` must be specified")


def _host_errors(place: Place) -> Iterator[SchemaError]:
    host, field = place.text, place.path
    if address_family(host):
        yield invalid_value(field, host, "must be a DNS name, not an IP address")
    yield from _domain_errors(host, field)


def _domain_errors(host: str, field: str) -> Iterator[SchemaError]:
    if "*" not in host:
        yield from subdomain_errors(host, field)
    elif not _WILDCARD.fullmatch(host):
        text_ = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
            "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. "
            f"'*.example.com', regex used for validation is '{_WILDCARD.pattern}')"
        )
        yield invalid_value(field, host, text_)


def _path_errors(place: Place) -> Iterator[SchemaError]:
    kind, value, path = place.fields.get("pathType"), text(place.fields.get("path")), place.below("path")
    if kind in _PATH_TYPES and not value.startswith("/") and (value or kind != "ImplementationSpecific"):
        yield invalid_value(path, value, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        for part in _FORBIDDEN_PARTS:
            if part in value:
                yield invalid_value(path, value, f"must not contain '{part}'")
        for end in _FORBIDDEN_ENDS:
            if value.endswith(end):
                yield invalid_value(path, value, f"cannot end with '{end}'")
    if kind is not None:
        yield from place.errors_below("backend", place.fields.get("backend"))


def _backend_errors(place: Place) -> Iterator[SchemaError]:
    service, path = place.fields.get("service"), place.below("service")
    resource = place.fields.get("resource")
    if is_mapping(resource):
        if is_mapping(service):
            yield invalid_value(place.path, "", "cannot set both resource and service backends")
        else:
            yield from _resource_errors(resource, place.below("resource"))
        return
    if not is_mapping(service):
        yield invalid_value(place.path, "", "resource or service backend is required")
        return
    port, name = mapping(service.get("port")), text(service.get("name"))
    yield from label_name_errors(name, f"{path}.name") if name else (required(f"{path}.name"),)
    if port.get("name") and port.get("number"):
        yield invalid_value(place.path, "", "cannot set both port name & port number")
    elif port.get("name"):
        yield from port_name_errors(port["name"], f"{path}.port.name")
    elif port.get("number"):
        yield from port_errors(port["number"], f"{path}.port.number")
    else:
        yield required(place.path, "port name or number is required")


def _resource_errors(resource: dict[str, object], path: str) -> Iterator[SchemaError]:
    if resource.get("apiGroup") is not None:
        yield from subdomain_errors(text(resource["apiGroup"]), f"{path}.apiGroup")
    for name in ("kind", "name"):
        value = text(resource.get(name))
        yield from path_segment_errors(value, f"{path}.{name}") if value else (required(f"{path}.{name}"),)


def _hosts_errors(place: Place) -> Iterator[SchemaError]:
    for number, host in enumerate(texts(place.value)):
        yield from _domain_errors(host, f"{place.path}[{number}]")


def _new_errors(ingress: Mapping[str, object]) -> Iterator[SchemaError]:
    annotated, named = at(ingress, "metadata", "annotations", _CLASS), at(ingress, "spec", "ingressClassName")
    if annotated is not None and named is not None and annotated != named:
        yield invalid_value(f"annotations.{_CLASS}", annotated, "must match `ingressClassName` when both are specified")


def _new_warnings(ingress: Mapping[str, object]) -> Iterator[str]:
    annotated = at(ingress, "metadata", "annotations", _CLASS) is not None
    if annotated and at(ingress, "spec", "ingressClassName") is None:
        yield f"annotation \"{_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"


def _hosts(ingress: Mapping[str, object]) -> str:
    """Format the first three hosts without rules that have no host, and the number of remaining rules."""
    hosts = [text(at(rule, "host")) for rule in items(at(ingress, "spec", "rules"))]
    named_hosts = [host for host in hosts if host]
    third = [place for place, host in enumerate(hosts) if host][2:3]
    more = f" + {len(hosts) - 3} more..." if third and len(hosts) > third[0] + 1 else ""
    return ",".join(named_hosts[:3]) + more if named_hosts else "*"


STRATEGY: Final = Strategy(
    checks={
        "ingress_backend": _backend_errors,
        "ingress_host": _host_errors,
        "ingress_hosts": _hosts_errors,
        "ingress_path": _path_errors,
        "ingress_rules": _rules_errors,
    },
    validate_new=_new_errors,
    warn_new=_new_warnings,
    warn_status=load_balancer_warnings,
    cells={
        "Hosts": _hosts,
        "Address": lambda ingress: ",".join(load_balancer_addresses(ingress)),
        "Ports": lambda ingress: "80, 443" if items(at(ingress, "spec", "tls")) else "80",
    },
)


def _parameters(ingress_class: Mapping[str, object]) -> str:
    parameters = at(ingress_class, "spec", "parameters")
    if parameters is None:
        return NONE
    group = text(at(parameters, "apiGroup"))
    return f"{text(at(parameters, 'kind'))}{group and f'.{group}'}/{text(at(parameters, 'name'))}"


def _reference_errors(place: Place) -> Iterator[SchemaError]:
    scope, namespace, path = text(place.fields.get("scope")), place.fields.get("namespace"), place.below("namespace")
    if scope == "Namespace" and namespace is None:
        yield required(path, "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from label_name_errors(text(namespace), path)
    elif scope == "Cluster" and namespace is not None:
        yield forbidden_field(path, "`parameters.scope` is set to 'Cluster'")
    elif scope != "Cluster":
        yield from one_of(scope, place.below("scope"), ("Cluster", "Namespace"))


CLASS: Final = Strategy(
    checks={"class_parameters": _reference_errors},
    cells={
        "Name": marked_default("ingressclass.kubernetes.io/is-default-class"),
        "Parameters": _parameters,
    },
)
