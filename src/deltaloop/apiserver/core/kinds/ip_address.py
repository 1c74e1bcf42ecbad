"""IPAddress and ServiceCIDR: each address of a Service is an IPAddress object, which is deleted with the Service.

Source: Kubernetes pkg/registry/core/service/ipallocator/ipallocator.go; KEP-1880.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.kinds.addresses import address_warnings, network_errors, network_family, why_no_address
from deltaloop.apiserver.core.kinds.cells import NONE
from deltaloop.apiserver.core.kinds.field_checks import each
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import SchemaError, invalid_value, required

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
    """Yield warnings about the addresses of a load balancer in the status."""
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


STRATEGY: Final = Strategy(validate_new=_new_errors, cells={"ParentRef": _parent})
RANGES: Final = Strategy(checks={"service_ranges": _range_errors}, validate_update=_range_update_errors)
