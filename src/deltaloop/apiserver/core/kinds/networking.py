"""Strategies of ingresses, network policies, and IP addresses.

Source: Kubernetes pkg/registry/core/service/ipallocator/ipallocator.go; KEP-1880; Kubernetes
pkg/apis/networking/validation/validation.go; Kubernetes pkg/apis/networking/validation/validation.go;
pkg/registry/networking/ingress/strategy.go; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.kinds.cells import NONE, load_balancer_addresses, marked_default
from deltaloop.apiserver.core.kinds.field_checks import (
    address_family,
    address_warnings,
    each,
    network_errors,
    network_family,
    one_of,
    port_errors,
    port_name_errors,
    why_no_address,
)
from deltaloop.apiserver.core.metadata.rules import label_name_errors, path_segment_errors, subdomain_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, required

IP_ADDRESS: Final = ResourceType[Resource]("networking.k8s.io", "v1", "IPAddress", "ipaddresses", namespaced=False)
_MOST_RANGES: Final = 2
_FAMILY: Final = "ipaddress.kubernetes.io/ip-family"
_MANAGED_BY: Final = "ipaddress.kubernetes.io/managed-by"
_ALLOCATOR: Final = "ipallocator.k8s.io"


def addresses_of(service: Mapping[str, object] | None) -> tuple[str, ...]:
    """Return the cluster IPs of a Service, or none for a headless Service or None."""
    found = texts(at(mapping(service), "spec", "clusterIPs"))
    return tuple(str(ipaddress.ip_address(address)) for address in found if address != "None")


def ip_address(address: str, *, namespace: str, name: str) -> dict[str, object]:
    labels = {_FAMILY: f"IPv{ipaddress.ip_address(address).version}", _MANAGED_BY: _ALLOCATOR}
    parent = {"resource": "services", "namespace": namespace, "name": name}
    return {"metadata": {"name": address, "labels": labels}, "spec": {"parentRef": parent}}


def uid_beside(uid: str, name: str) -> str:
    """Return a deterministic UID for an object that is created together with the object of ``uid``."""
    digits = hashlib.sha256(f"{uid}/{name}".encode()).hexdigest()
    # The format is UUID version 8 (RFC 9562), which does not specify how the value was generated.
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"


def load_balancer_warnings(owner: Mapping[str, object]) -> Iterator[str]:
    for field, ingress in each(at(owner, "status", "loadBalancer"), "ingress", "status.loadBalancer"):
        yield from address_warnings(text(ingress.get("ip")), field)


def _parent(ip: Mapping[str, object]) -> str:
    parent = at(ip, "spec", "parentRef")
    if parent is None:
        return NONE
    group, namespace = text(at(parent, "group")), text(at(parent, "namespace"))
    resource = f"{text(at(parent, 'resource'))}{group and f'.{group}'}".lower()
    return f"{resource}/{namespace and f'{namespace}/'}{text(at(parent, 'name'))}"


def _new_errors(ip: Mapping[str, object]) -> Iterator[SchemaError]:
    name = text(at(ip, "metadata", "name"))
    why = why_not_canonical(name)
    if why:
        yield invalid_value("metadata.name", name, why)


def why_not_canonical(value: str) -> str:
    """Return the reason why a text is not an address in canonical form, or an empty string."""
    why = why_no_address(value)
    if not why and str(ipaddress.ip_address(value)) != value:
        why = f'must be in canonical form ("{ipaddress.ip_address(value)}")'
    return why


def _range_errors(place: Place) -> Iterator[SchemaError]:
    ranges = texts(place.value)
    if not ranges:
        yield required(place.path, "at least one CIDR required")
    elif len(ranges) > _MOST_RANGES:
        yield invalid_value(place.path, list(ranges), "may only hold up to 2 values")
    else:
        for number, network in enumerate(ranges):
            wrong = [*network_errors(network, f"{place.path}[{number}]")]
            yield from wrong
            if not wrong and str(ipaddress.ip_network(network, strict=False)) != network:
                yield invalid_value(f"{place.path}[{number}]", network, "must be in canonical form")
        families = [network_family(network) for network in ranges]
        if len(families) == _MOST_RANGES and families[0] == families[1] != 0:
            yield invalid_value(place.path, list(ranges), "may specify no more than one IP for each IP family")


def _range_update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    old, new = (texts(at(each, "spec", "cidrs")) for each in (before, after))
    if len(old) != len(new) and (len(old), len(new)) != (1, _MOST_RANGES):
        yield invalid_value("spec.cidrs", list(new), IMMUTABLE)
        return
    for number, (was, network) in enumerate(zip(old, new, strict=False)):
        if was != network:
            yield invalid_value(f"spec.cidrs[{number}]", network, IMMUTABLE)


IP_ADDRESSES: Final = Strategy(validate_new=_new_errors, cells={"ParentRef": _parent})
RANGES: Final = Strategy(checks={"service_ranges": _range_errors}, validate_update=_range_update_errors)


IPV6: Final = 6
_TYPES: Final = "Ingress", "Egress"


def _spec_defaults(spec: dict[str, object]) -> None:
    if not texts(spec.get("policyTypes")):
        spec["policyTypes"] = ["Ingress", "Egress"] if items(spec.get("egress")) else ["Ingress"]


def _end_port_errors(place: Place) -> Iterator[SchemaError]:
    start = place.beside("port")
    if start is None:
        yield invalid_value(place.path, place.value, "may not be specified when `port` is not specified")
    elif isinstance(start, str):
        yield invalid_value(place.path, place.value, "may not be specified when `port` is non-numeric")
    else:
        if integer(place.value) < integer(start):
            yield invalid_value(place.path, place.value, "must be greater than or equal to `port`")
        yield from port_errors(place.value, place.path)


def _warnings(policy: Mapping[str, object]) -> Iterator[str]:
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule_path, rule in each(policy.get("spec"), direction, "spec"):
            for path, peer in each(rule, peers, rule_path):
                block, where = peer.get("ipBlock"), f"{path}.ipBlock"
                yield from network_warnings(text(at(block, "cidr")), f"{where}.cidr")
                for place, network in enumerate(texts(at(block, "except"))):
                    yield from network_warnings(network, f"{where}.except[{place}]")


def network_warnings(value: str, field: str) -> Iterator[str]:
    try:
        address, network = ipaddress.ip_interface(value), ipaddress.ip_network(value, strict=False)
    except ValueError:
        return
    if address.ip != network.network_address:
        single = f"{address.ip}/{network.max_prefixlen}"
        yield f'{field}: CIDR value "{value}" is ambiguous in this context (should be "{network}" or "{single}"?)'
    elif network.version == IPV6 and str(network) != value:
        yield f'{field}: IPv6 CIDR value "{value}" should be in RFC 5952 canonical format ("{network}")'


def _peer_errors(place: Place) -> Iterator[SchemaError]:
    found = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if is_mapping(place.fields.get(name))]
    if not found:
        yield required(place.path, "must specify a peer")
    elif len(found) > 1 and "ipBlock" in found:
        yield forbidden_field(place.path, "may not specify both ipBlock and another peer")


def _except_errors(place: Place) -> Iterator[SchemaError]:
    whole = _network(text(place.beside("cidr")))
    if whole is None:
        return
    for number, network in enumerate(texts(place.value)):
        where, part = f"{place.path}[{number}]", _network(network)
        if part is None:
            yield from network_errors(network, where)
        elif part.version != whole.version or part.prefixlen <= whole.prefixlen or part.network_address not in whole:
            yield invalid_value(where, network, "must be a strict subset of `cidr`")


_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def _network(value: str) -> _Network | None:
    return ipaddress.ip_network(value, strict=False) if network_family(value) else None


def _types_errors(place: Place) -> Iterator[SchemaError]:
    kinds = texts(place.value)
    if len(kinds) > len(_TYPES):
        yield invalid_value(place.path, list(kinds), "may not specify more than two policyTypes")
        return
    for number, kind in enumerate(kinds):
        yield from one_of(kind, f"{place.path}[{number}]", _TYPES)


NETWORK_POLICY: Final = Strategy(
    warn=_warnings,
    counts_empty="spec",
    defaults={"networking.v1.NetworkPolicySpec": _spec_defaults},
    checks={
        "end_port": _end_port_errors,
        "excepted_networks": _except_errors,
        "peer": _peer_errors,
        "policy_types": _types_errors,
    },
)


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


def _ingress_new_errors(ingress: Mapping[str, object]) -> Iterator[SchemaError]:
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


INGRESS: Final = Strategy(
    checks={
        "ingress_backend": _backend_errors,
        "ingress_host": _host_errors,
        "ingress_hosts": _hosts_errors,
        "ingress_path": _path_errors,
        "ingress_rules": _rules_errors,
    },
    validate_new=_ingress_new_errors,
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
