"""What is there from the start: namespaces, priority classes, the range of Services, the server's own Service.

There is also an APIService for each version of a group, and what is given as a real server has it.
The real server makes the same. The address of its own Service's endpoints is the one that this server listens on, which
is loopback: nothing but this machine reaches it.

Source: Kubernetes pkg/controlplane/controller/{systemnamespaces,kubernetesservice,defaultservicecidr};
pkg/controlplane/reconcilers; pkg/apis/scheduling/types.go.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterable
from typing import Any, Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.kinds.api_service import ON_START, own_service, service_name
from deltaloop.apiserver.core.kinds.priority_class import SYSTEM_CLASSES
from deltaloop.apiserver.core.kinds.service_allocation import FIRST_ADDRESS, SERVICE_RANGE
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamps
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.writes.applying import apply_object
from deltaloop.apiserver.core.writes.operations import Operations

FIRST_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_SERVICE_CIDR: Final = ResourceType[Resource](
    "networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", namespaced=False
)
_RANGE_MANAGER: Final = "kubernetes-service-cidr-controller"
_NAMESPACE: Final = FIRST_NAMESPACES[0]
_NAME: Final = "kubernetes"
_HTTPS: Final = 443
_DESCRIPTIONS: Final = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
}
Fields = dict[str, Any]


def make_namespaces(operations: Operations, stamps: Stamps) -> None:
    """Create the namespaces that exist from the start, where they are missing."""
    for name in FIRST_NAMESPACES:
        _ensure(operations, kinds.NAMESPACE, "", {"metadata": {"name": name}}, stamps)


def make_first_objects(operations: Operations, stamps: Stamps) -> None:
    """Create all that exists from the start and does not depend on where the server listens, where it is missing."""
    make_namespaces(operations, stamps)
    for name, value in SYSTEM_CLASSES.items():
        fields = {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]}
        _ensure(operations, kinds.PRIORITY_CLASS, "", fields, stamps)
    _make_range(operations, stamps)
    _make_own_services(operations, stamps)


def make_observed(operations: Operations, observed: Iterable[tuple[str, Fields]], stamps: Stamps) -> None:
    """Create what a real server has from the start, where it is missing: the path of its collection, and itself.

    They are stored as a real server has them, owners of fields included, so nothing has to be filled in or checked.
    """
    for path, fields in observed:
        group, version, plural = path.split("/")
        served = operations.registry.find(group, version, plural)
        key = "/".join(filter(None, (fields["metadata"].get("namespace"), fields["metadata"]["name"])))
        if served is None or operations.store.get(served.storage, key) is not None:
            continue
        stamp = stamps()
        metadata = {**fields["metadata"], "uid": stamp.uid, "creationTimestamp": stamp.time}
        metadata["managedFields"] = [{**entry, "time": stamp.time} for entry in metadata.get("managedFields", ())]
        made = {**fields, "metadata": metadata}
        if conditions := at(fields, "status", "conditions"):
            timed = [{**mapping(item), "lastTransitionTime": stamp.time} for item in items(conditions)]
            made["status"] = {"conditions": timed}
        operations.store.create(served.storage, key, made)


def _make_own_services(operations: Operations, stamps: Stamps) -> None:
    """Create the APIServices of the versions that the server itself serves, where they are missing."""
    registry = operations.registry
    priorities = {(item.type.group, item.type.version): item.priority for item in registry.resources()}
    for (group, version), priority in priorities.items():
        name = service_name(group, version)
        if group != kinds.API_SERVICE.group and operations.store.get(kinds.API_SERVICE.group_resource, name) is None:
            stamp = stamps()
            fields = own_service(group, version, priority, managed=ON_START, uid=stamp.uid, time=stamp.time)
            operations.store.create(kinds.API_SERVICE.group_resource, name, fields)


def make_own_service(operations: Operations, *, address: str, port: int, stamps: Stamps) -> None:
    """Create the Service ``default/kubernetes`` and its endpoints, or correct them after the server has moved.

    Args:
        operations: Carries out verbs on the store: create, update, delete and the others.
        address: Where the server listens.
        port: The port that the server listens on.
        stamps: Give the time.
    """
    service = {
        "metadata": {"name": _NAME, "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": FIRST_ADDRESS,
            "ports": [{"name": "https", "port": _HTTPS, "protocol": "TCP", "targetPort": port}],
            "ipFamilyPolicy": "SingleStack",
            "type": "ClusterIP",
        },
    }
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    endpoints = {
        "metadata": {"name": _NAME, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
    }
    endpoint_slice = {
        "metadata": {"name": _NAME, "labels": {"kubernetes.io/service-name": _NAME}},
        "addressType": f"IPv{ipaddress.ip_address(address).version}",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": ports,
    }
    _keep(operations, kinds.SERVICE, service, (("spec", "ports"),), stamps)
    _keep(operations, kinds.ENDPOINTS, endpoints, (("subsets",),), stamps)
    _keep(operations, kinds.ENDPOINT_SLICE, endpoint_slice, (("endpoints",), ("ports",)), stamps)


def _make_range(operations: Operations, stamps: Stamps) -> None:
    fields = {"metadata": {"name": _NAME}, "spec": {"cidrs": [SERVICE_RANGE]}}
    served = _ensure(operations, _SERVICE_CIDR, "", fields, stamps)
    if served is None:
        return
    stamp = dataclasses.replace(stamps(), manager=_RANGE_MANAGER)
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": stamp.time,
        "message": "Kubernetes default Service CIDR is ready",
    }
    kind = served.type
    applied: Fields = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"name": _NAME}}
    applied["status"] = {"conditions": [ready]}
    apply_object(operations, served, "", _NAME, applied, stamp=stamp, subresource="status")


def _ensure(
    operations: Operations, kind: ResourceType[Resource], namespace: str, fields: Fields, stamps: Stamps
) -> ServedResource | None:
    """Create an object if it is missing, and return its resource then."""
    served = operations.registry.resource(kind)
    if served is None or operations.find(served, namespace, fields["metadata"]["name"]) is not None:
        return None
    operations.create(served, namespace, fields, stamp=stamps())
    return served


def _keep(
    operations: Operations,
    kind: ResourceType[Resource],
    fields: Fields,
    paths: tuple[tuple[str, ...], ...],
    stamps: Stamps,
) -> None:
    """Create an object in the first namespace if it is missing, or let it have what it is to have at these paths."""
    served = operations.registry.resource(kind)
    if served is None or _ensure(operations, kind, _NAMESPACE, fields, stamps) is not None:
        return
    present = decode_object(served, operations.read(served, _NAMESPACE, _NAME))
    if all(at(present, *path) == at(fields, *path) for path in paths):
        return
    for *outer, last in paths:
        part = present
        for name in outer:
            part = mapping(part[name])
        part[last] = at(fields, *outer, last)
    operations.update(served, _NAMESPACE, _NAME, present, stamp=stamps())
