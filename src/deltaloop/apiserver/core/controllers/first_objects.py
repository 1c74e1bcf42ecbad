"""Objects that exist after the start, like on the real server.

Source: Kubernetes pkg/controlplane/controller/{systemnamespaces,kubernetesservice,defaultservicecidr};
pkg/controlplane/reconcilers; pkg/apis/scheduling/types.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any, Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.kinds.cluster import SYSTEM_CLASSES
from deltaloop.apiserver.core.kinds.extensions import ON_START, own_service, service_name
from deltaloop.apiserver.core.kinds.service_allocation import FIRST_ADDRESS, SERVICE_RANGE
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.write_context import Moments
from deltaloop.apiserver.core.writes.apply import apply
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.server_state import ServerState

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


def make_namespaces(state: ServerState, moments: Moments) -> None:
    for name in FIRST_NAMESPACES:
        _ensure(state, kinds.NAMESPACE, "", {"metadata": {"name": name}}, moments)


def make_first_objects(state: ServerState, moments: Moments) -> None:
    """Create the missing initial objects that do not depend on the server's address."""
    make_namespaces(state, moments)
    for name, value in SYSTEM_CLASSES.items():
        fields = {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]}
        _ensure(state, kinds.PRIORITY_CLASS, "", fields, moments)
    _make_range(state, moments)
    _make_own_services(state, moments)


def make_observed(state: ServerState, observed: Iterable[tuple[str, Fields]], moments: Moments) -> None:
    """Create missing objects that were recorded from a real server, without defaulting and validation."""
    for path, fields in observed:
        group, version, plural = path.split("/")
        served = state.registry.find(group, version, plural)
        key = "/".join(filter(None, (fields["metadata"].get("namespace"), fields["metadata"]["name"])))
        if served is None or state.store.get(served.storage, key) is not None:
            continue
        moment = moments()
        metadata = {**fields["metadata"], "uid": moment.uid, "creationTimestamp": moment.time}
        metadata["managedFields"] = [{**entry, "time": moment.time} for entry in metadata.get("managedFields", ())]
        made = {**fields, "metadata": metadata}
        if conditions := at(fields, "status", "conditions"):
            timed = [{**mapping(item), "lastTransitionTime": moment.time} for item in items(conditions)]
            made["status"] = {"conditions": timed}
        state.store.create(served.storage, key, made)


def _make_own_services(state: ServerState, moments: Moments) -> None:
    """Create the missing APIServices of the built-in group versions."""
    registry = state.registry
    priorities = {(item.type.group, item.type.version): item.priority for item in registry.resources()}
    for (group, version), priority in priorities.items():
        name = service_name(group, version)
        if group != kinds.API_SERVICE.group and state.store.get(kinds.API_SERVICE.group_resource, name) is None:
            moment = moments()
            fields = own_service(group, version, priority, managed=ON_START, uid=moment.uid, time=moment.time)
            state.store.create(kinds.API_SERVICE.group_resource, name, fields)


def make_own_service(state: ServerState, *, address: str, port: int, moments: Moments) -> None:
    """Create the Service ``default/kubernetes`` and its endpoints, or update them to the server's current address."""
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
    _keep(state, kinds.SERVICE, service, (("spec", "ports"),), moments)
    _keep(state, kinds.ENDPOINTS, endpoints, (("subsets",),), moments)
    _keep(state, kinds.ENDPOINT_SLICE, endpoint_slice, (("endpoints",), ("ports",)), moments)


def _make_range(state: ServerState, moments: Moments) -> None:
    fields = {"metadata": {"name": _NAME}, "spec": {"cidrs": [SERVICE_RANGE]}}
    served = _ensure(state, _SERVICE_CIDR, "", fields, moments)
    if served is None:
        return
    moment = moments()
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": moment.time,
        "message": "Kubernetes default Service CIDR is ready",
    }
    kind = served.type
    applied: Fields = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"name": _NAME}}
    applied["status"] = {"conditions": [ready]}
    apply(state.own_write(served, "", _NAME, moment, subresource="status", manager=_RANGE_MANAGER), applied)


def _ensure(
    state: ServerState, kind: ResourceType[Resource], namespace: str, fields: Fields, moments: Moments
) -> ServedResource | None:
    served = state.registry.resource(kind)
    if served is None or state.objects.get(served.storage, served.key(namespace, fields["metadata"]["name"])):
        return None
    create(state.own_write(served, namespace, "", moments()), fields)
    return served


def _keep(
    state: ServerState,
    kind: ResourceType[Resource],
    fields: Fields,
    paths: tuple[tuple[str, ...], ...],
    moments: Moments,
) -> None:
    """Create a missing object in the first namespace, or change the given fields of the existing object.

    A change is neither validated nor admitted, because servers that begin with the objects of others always need one.
    """
    served = state.registry.resource(kind)
    if served is None or _ensure(state, kind, _NAMESPACE, fields, moments) is not None:
        return
    present = decode_object(served, state.read(served, _NAMESPACE, _NAME))
    if all(at(present, *path) == at(fields, *path) for path in paths):
        return
    for *outer, last in paths:
        part = present
        for name in outer:
            part = mapping(part[name])
        part[last] = at(fields, *outer, last)
    state.put(kind, present)
