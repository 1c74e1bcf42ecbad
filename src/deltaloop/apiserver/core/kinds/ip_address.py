"""IPAddress: each address that a Service has is an object of its own, which goes with it.

Source: Kubernetes pkg/registry/core/service/ipallocator/ipallocator.go; KEP-1880.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.kinds.addresses import address_warnings
from deltaloop.apiserver.core.kinds.cells import NONE
from deltaloop.apiserver.core.kinds.field_checks import each
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, mapping, text, texts

IP_ADDRESS: Final = ResourceType[Resource]("networking.k8s.io", "v1", "IPAddress", "ipaddresses", namespaced=False)
_FAMILY: Final = "ipaddress.kubernetes.io/ip-family"
_MANAGED_BY: Final = "ipaddress.kubernetes.io/managed-by"
_ALLOCATOR: Final = "ipallocator.k8s.io"


def addresses_of(service: Mapping[str, object] | None) -> tuple[str, ...]:
    """Return the addresses of a Service, none of a headless one or of None."""
    found = texts(at(mapping(service), "spec", "clusterIPs"))
    return tuple(str(ipaddress.ip_address(address)) for address in found if address != "None")


def ip_address(address: str, *, namespace: str, name: str) -> dict[str, object]:
    """Return the IPAddress of a Service's address."""
    labels = {_FAMILY: f"IPv{ipaddress.ip_address(address).version}", _MANAGED_BY: _ALLOCATOR}
    parent = {"resource": "services", "namespace": namespace, "name": name}
    return {"metadata": {"name": address, "labels": labels}, "spec": {"parentRef": parent}}


def uid_beside(uid: str, name: str) -> str:
    """Return a uid for what is made together with an object of this uid, such as the IPAddress of a Service."""
    digits = hashlib.sha256(f"{uid}/{name}".encode()).hexdigest()
    # The form of a uuid of version 8 (RFC 9562), which says nothing of how it was made.
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"


def load_balancer_warnings(owner: Mapping[str, object]) -> Iterator[str]:
    """Yield the warnings about the addresses of a load balancer in a status."""
    for field, ingress in each(at(owner, "status", "loadBalancer"), "ingress", "status.loadBalancer"):
        yield from address_warnings(text(ingress.get("ip")), field)


def _parent(ip: Mapping[str, object]) -> str:
    parent = at(ip, "spec", "parentRef")
    if parent is None:
        return NONE
    group, namespace = text(at(parent, "group")), text(at(parent, "namespace"))
    resource = f"{text(at(parent, 'resource'))}{group and f'.{group}'}".lower()
    return f"{resource}/{namespace and f'{namespace}/'}{text(at(parent, 'name'))}"


STRATEGY: Final = Strategy(cells={"ParentRef": _parent})
