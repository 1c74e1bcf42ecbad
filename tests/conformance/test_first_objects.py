"""What is there from the start, and the IPAddress objects that go with Services.

Source: Kubernetes documentation, "Virtual IPs and Service Proxies", "Pod Priority and Preemption"; KEP-1880.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from deltaloop.api.kubernetes_version import MINOR
from deltaloop.apiserver.bootstrap_policy import bootstrap_policy
from tests.conformance.target import Api, conformance

ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"


def without_times(fields: dict[str, Any]) -> dict[str, Any]:
    metadata = fields["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "labels", "generation") if name in metadata}
    owned = [{name: value for name, value in entry.items() if name != "time"} for entry in metadata["managedFields"]]
    return {**fields, "metadata": {**kept, "managedFields": owned}}


def owned_by(manager: str, version: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    entry = {"manager": manager, "operation": "Update", "apiVersion": version, "fieldsType": "FieldsV1"}
    return {**entry, "fieldsV1": fields, **more}


def dots(*names: str) -> dict[str, Any]:
    return {f"f:{name}": {} for name in names}


@conformance("first objects: the server's own Service")
async def test_the_servers_own_service(api: Api) -> None:
    found = without_times((await api.get("/api/v1/namespaces/default/services/kubernetes")).json)
    port = found["spec"]["ports"][0].pop("targetPort")
    assert int(api.url.rpartition(":")[2]) == port
    ports: dict[str, Any] = {
        ".": {},
        'k:{"port":443,"protocol":"TCP"}': {".": {}, **dots("name", "port", "protocol", "targetPort")},
    }
    spec = dots("clusterIP", "internalTrafficPolicy", "ipFamilyPolicy", "sessionAffinity", "type")
    labels: dict[str, Any] = {".": {}, **dots("component", "provider")}
    owned: dict[str, Any] = {"f:metadata": {"f:labels": labels}, "f:spec": {**spec, "f:ports": ports}}
    assert found == {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
            "managedFields": [owned_by("kube-apiserver", "v1", owned)],
        },
        "spec": {
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP"}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
        "status": {"loadBalancer": {}},
    }


@conformance("first objects: endpoints of the server's own Service")
async def test_its_endpoints(api: Api) -> None:
    port = int(api.url.rpartition(":")[2])
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"

    async def there() -> bool:
        return (await api.get(slices)).status == 200

    await api.eventually(there)
    found = without_times((await api.get(slices)).json)
    addresses = found["endpoints"][0].pop("addresses")
    assert [ipaddress.ip_address(address).version for address in addresses] == [4]
    owned: dict[str, Any] = {
        "f:addressType": {},
        "f:endpoints": {},
        "f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/service-name": {}}},
        "f:ports": {},
    }
    assert found == {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "generation": 1,
            "labels": {"kubernetes.io/service-name": "kubernetes"},
            "managedFields": [owned_by("kube-apiserver", "discovery.k8s.io/v1", owned)],
        },
        "addressType": "IPv4",
        "endpoints": [{"conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    old = without_times((await api.get("/api/v1/namespaces/default/endpoints/kubernetes")).json)
    label = "endpointslice.kubernetes.io/skip-mirror"
    owned = {"f:metadata": {"f:labels": {".": {}, f"f:{label}": {}}}, "f:subsets": {}}
    assert old == {
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {label: "true"},
            "managedFields": [owned_by("kube-apiserver", "v1", owned)],
        },
        "subsets": [
            {"addresses": [{"ip": addresses[0]}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}
        ],
    }


@conformance(
    "first objects: priority classes of the system",
    ("system-node-critical", "system-node-critical", 2_000_001_000, "that must not be moved from their current node."),
    (
        "system-cluster-critical",
        "system-cluster-critical",
        2_000_000_000,
        "that must run in the cluster, but can be moved to another node if necessary.",
    ),
)
async def test_priority_classes(api: Api, name: str, value: int, words: str) -> None:
    found = without_times((await api.get(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")).json)
    owned = dots("description", "preemptionPolicy", "value")
    assert found == {
        "kind": "PriorityClass",
        "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {
            "name": name,
            "generation": 1,
            "managedFields": [owned_by("kube-apiserver", "scheduling.k8s.io/v1", owned)],
        },
        "value": value,
        "description": f"Used for system critical pods {words}",
        "preemptionPolicy": "PreemptLowerPriority",
    }


@conformance("first objects: the range that Services get their addresses from")
async def test_the_range(api: Api) -> None:
    found = without_times((await api.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes")).json)
    (condition,) = found["status"]["conditions"]
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "Ready",
        "status": "True",
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    }
    (network,) = found["spec"]["cidrs"]
    assert ipaddress.ip_address("10.0.0.1") in ipaddress.ip_network(network)
    ready: dict[str, Any] = {".": {}, **dots("lastTransitionTime", "message", "status", "type")}
    status: dict[str, Any] = {"f:status": {"f:conditions": {'k:{"type":"Ready"}': ready}}}
    version = "networking.k8s.io/v1"
    assert found["metadata"]["managedFields"] == [
        owned_by("kubernetes-service-cidr-controller", version, status, operation="Apply", subresource="status"),
        owned_by("kube-apiserver", version, {"f:spec": {"f:cidrs": {}}}),
    ]


@conformance("IPAddress: goes with the address of a Service")
async def test_an_address_of_a_service(api: Api) -> None:
    services = f"{api.core}/services"
    made = await api.created(services, {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})
    address = made.json["spec"]["clusterIP"]
    found = without_times((await api.get(f"{ADDRESSES}/{address}")).json)
    labels = {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    owned: dict[str, Any] = {
        "f:metadata": {"f:labels": {".": {}, **dots(*labels)}},
        "f:spec": {"f:parentRef": {".": {}, **dots("name", "namespace", "resource")}},
    }
    assert found == {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": address,
            "labels": labels,
            "managedFields": [owned_by("kube-apiserver", "networking.k8s.io/v1", owned)],
        },
        "spec": {"parentRef": {"resource": "services", "namespace": api.namespace, "name": "a"}},
    }
    version = (await api.get(f"{ADDRESSES}/{address}")).json["metadata"]["resourceVersion"]
    for change in ({"metadata": {"labels": {"x": "y"}}}, {"spec": {"type": "NodePort"}}):
        assert (await api.patch(f"{services}/a", change)).status == 200
    assert (await api.get(f"{ADDRESSES}/{address}")).json["metadata"]["resourceVersion"] == version
    assert (await api.delete(f"{services}/a")).status == 200
    await api.eventually(lambda: is_gone(api, address))


async def is_gone(api: Api, address: str) -> bool:
    return (await api.get(f"{ADDRESSES}/{address}")).status == 404


@conformance("IPAddress: comes and goes with the type of a Service")
async def test_a_service_that_loses_its_address(api: Api) -> None:
    services = f"{api.core}/services"
    made = await api.created(services, {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})
    address = made.json["spec"]["clusterIP"]
    without = {"type": "ExternalName", "externalName": "x.example.com", "clusterIP": None, "clusterIPs": None}
    assert (await api.patch(f"{services}/a", {"spec": without})).status == 200
    await api.eventually(lambda: is_gone(api, address))
    again = await api.patch(f"{services}/a", {"spec": {"type": "ClusterIP", "externalName": None}})
    assert again.status == 200
    assert (await api.get(f"{ADDRESSES}/{again.json['spec']['clusterIP']}")).status == 200


@conformance("IPAddress: is not made by what is not stored, or has no address")
async def test_services_without_addresses(api: Api) -> None:
    before = set((await api.get(ADDRESSES)).names)
    services = f"{api.core}/services"
    ports = {"spec": {"ports": [{"port": 80}]}}
    assert (await api.post(f"{services}?dryRun=All", {"metadata": {"name": "a"}, **ports})).status == 201
    await api.created(services, {"metadata": {"name": "b"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}}})
    await api.created(services, {"metadata": {"name": "c"}, "spec": {"type": "ExternalName", "externalName": "x.y"}})
    refused = {"metadata": {"name": "d"}, "spec": {"ports": [{"port": 80, "nodePort": 1}], "type": "NodePort"}}
    assert (await api.post(services, refused)).status == 422
    assert set((await api.get(ADDRESSES)).names) == before


@conformance("IPAddress: an address that one stands for is taken")
async def test_a_taken_address(api: Api) -> None:
    # One that is given out only to those who ask for it, until all others are taken.
    wanted = f"10.0.0.{2 + api.number % 10}"
    parent = {"resource": "services", "namespace": api.namespace, "name": "other"}
    made = await api.post(ADDRESSES, {"metadata": {"name": wanted}, "spec": {"parentRef": parent}})
    assert made.status == 201, made.text
    service = {"metadata": {"name": "a"}, "spec": {"clusterIP": wanted, "ports": [{"port": 80}]}}
    answer = await api.post(f"{api.core}/services", service)
    assert answer.status == 422
    assert "provided IP is already allocated" in answer.text
    await api.delete(f"{ADDRESSES}/{wanted}")


@conformance(
    "first objects: roles and bindings with RBAC",
    *((plural, plural) for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")),
    secured=True,
    min_version=MINOR,
)
async def test_policy(api: Api, plural: str) -> None:
    of_the_server = ("uid", "resourceVersion", "creationTimestamp")
    listed = await api.get(f"/apis/rbac.authorization.k8s.io/v1/{plural}")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for item in listed.json["items"]:
        metadata = {name: value for name, value in item["metadata"].items() if name not in of_the_server}
        metadata["managedFields"] = without_times(item)["metadata"]["managedFields"]
        where = (metadata.get("namespace", ""), metadata["name"])
        found[where] = {**item, "metadata": metadata}
        assert item["metadata"]["uid"]
        assert item["metadata"]["creationTimestamp"]
    first = {
        (fields["metadata"].get("namespace", ""), fields["metadata"]["name"]): fields
        for kind, fields in bootstrap_policy()
        if kind == plural
    }
    assert first
    assert {where: found.get(where) for where in first} == first
