"""What is there from the start, and the IPAddress objects that go with Services.

Source: Kubernetes documentation, "Virtual IPs and Service Proxies", "Pod Priority and Preemption"; KEP-1880.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from deltaloop.api.kubernetes_version import MINOR
from deltaloop.apiserver.builtin_tables import bootstrap_policy, builtin_tables, flow_control
from tests.conformance.target import CRDS, Api, conformance, widget_crd

OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp")
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
async def test_kubernetes_service(api: Api) -> None:
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
async def test_endpoints_of_kubernetes_service(api: Api) -> None:
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
async def test_service_address_is_released_and_reallocated(api: Api) -> None:
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


async def listed(api: Api, path: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Objects as the data files have them, by namespace and name; each must have a uid and times."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for item in (await api.get(f"/apis/{path}")).json["items"]:
        given = item["metadata"]
        metadata = {name: value for name, value in given.items() if name not in OF_THE_SERVER}
        metadata["managedFields"] = without_times(item)["metadata"]["managedFields"]
        for condition in item.get("status", {}).get("conditions", []):
            assert condition.pop("lastTransitionTime")
        found[metadata.get("namespace", ""), metadata["name"]] = {**item, "metadata": metadata}
        assert given["uid"]
        assert given["creationTimestamp"]
    return found


@conformance(
    "first objects: roles and bindings with RBAC",
    *((plural, plural) for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")),
    secured=True,
    min_version=MINOR,
)
async def test_policy(api: Api, plural: str) -> None:
    path = f"rbac.authorization.k8s.io/v1/{plural}"
    found = await listed(api, path)
    first = {
        (fields["metadata"].get("namespace", ""), fields["metadata"]["name"]): fields
        for kind, fields in bootstrap_policy()
        if kind == path
    }
    assert first
    assert {where: found.get(where) for where in first} == first


@conformance(
    "first objects: what flow control is made of",
    *((plural, plural) for plural in ("flowschemas", "prioritylevelconfigurations")),
    min_version=MINOR,
)
async def test_flow_control(api: Api, plural: str) -> None:
    path = f"flowcontrol.apiserver.k8s.io/v1/{plural}"
    first = {("", fields["metadata"]["name"]): fields for kind, fields in flow_control() if kind == path}
    assert {("", "exempt"), ("", "catch-all")} <= first.keys()

    async def settled() -> bool:
        found = await listed(api, path)
        return {where: found.get(where) for where in first} == first

    await api.eventually(settled)


@conformance("APIServices: one for each version of a group", min_version=MINOR)
async def test_services_of_groups(api: Api) -> None:
    found = await listed(api, "apiregistration.k8s.io/v1/apiservices")
    managed = "kube-aggregator.kubernetes.io/automanaged"
    made = {
        name: fields for (_, name), fields in found.items() if fields["metadata"].get("labels") == {managed: "onstart"}
    }
    priorities = {
        name: (fields["spec"]["groupPriorityMinimum"], fields["spec"]["versionPriority"])
        for name, fields in made.items()
    }
    wanted: dict[str, tuple[int, int]] = {}
    for api_version, value in builtin_tables().priorities.items():
        group, _, version = api_version.rpartition("/")
        wanted[f"{version}.{group}"] = value
    assert priorities == wanted
    spec = dots("groupPriorityMinimum", "version", "versionPriority")
    labels: dict[str, Any] = {".": {}, f"f:{managed}": {}}
    available = {
        "type": "Available",
        "status": "True",
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    for name, group in (("v1.", ""), ("v2.autoscaling", "autoscaling")):
        owned: dict[str, Any] = {
            "f:metadata": {"f:labels": labels},
            "f:spec": {**spec, **(dots("group") if group else {})},
        }
        assert made[name] == {
            "metadata": {
                "name": name,
                "labels": {managed: "onstart"},
                "managedFields": [owned_by("kube-apiserver", "apiregistration.k8s.io/v1", owned)],
            },
            "spec": {
                **({"group": group} if group else {}),
                "version": name.partition(".")[0],
                "groupPriorityMinimum": priorities[name][0],
                "versionPriority": priorities[name][1],
            },
            "status": {"conditions": [available]},
        }


SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


async def versions_of(api: Api) -> set[str]:
    """The APIServices of the group of this case."""
    return {name.partition(".")[0] for name in (await api.get(SERVICES)).names if name.endswith(api.group())}


async def eventually_versions(api: Api, *versions: str) -> None:
    async def there() -> bool:
        return await versions_of(api) == set(versions)

    await api.eventually(there)


@conformance("APIServices: follow the versions that definitions serve")
async def test_services_of_definitions(api: Api) -> None:
    await api.widgets(versions=("v1", "v2"))
    await eventually_versions(api, "v1", "v2")
    made = await api.get(f"{SERVICES}/v2.{api.group()}")
    assert made.json["spec"] == {
        "group": api.group(),
        "version": "v2",
        "groupPriorityMinimum": 1000,
        "versionPriority": 100,
    }
    assert made.json["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert made.json["status"]["conditions"][0]["reason"] == "Local"
    other = widget_crd(api.group(), versions=("v2", "v3"))
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    other["metadata"]["name"], other["spec"]["names"] = f"gadgets.{api.group()}", names
    assert (await api.post(CRDS, other)).status == 201
    await eventually_versions(api, "v1", "v2", "v3")
    crd = f"{CRDS}/widgets.{api.group()}"
    versions = (await api.get(crd)).json["spec"]["versions"]
    versions[1]["served"] = False
    assert (await api.patch(crd, {"spec": {"versions": versions}})).status == 200
    assert await versions_of(api) == {"v1", "v2", "v3"}
    await api.delete(crd)
    await eventually_versions(api, "v2", "v3")
    assert (await api.get(f"{SERVICES}/v2.{api.group()}")).json["metadata"]["uid"] == made.json["metadata"]["uid"]
    await api.delete(f"{CRDS}/gadgets.{api.group()}")
    await eventually_versions(api)


@conformance("APIServices: one that somebody has made stays when a definition goes")
async def test_manually_created_api_services(api: Api) -> None:
    spec = {"group": api.group(), "version": "v1", "groupPriorityMinimum": 7, "versionPriority": 8}
    body: dict[str, Any] = {"metadata": {"name": f"v1.{api.group()}"}, "spec": spec, "status": {"conditions": []}}
    made = await api.post(SERVICES, body)
    assert made.status == 201, made.text
    (condition,) = made.json["status"]["conditions"]
    assert (condition["reason"], condition["status"]) == ("Local", "True")
    remote = {**spec, "version": "v2", "service": {"namespace": "default", "name": "x"}, "insecureSkipTLSVerify": True}
    other = await api.post(f"{SERVICES}?dryRun=All", {"metadata": {"name": f"v2.{api.group()}"}, "spec": remote})
    assert other.json["status"] == {}
    crd = widget_crd(api.group())
    assert (await api.post(f"{CRDS}?dryRun=All", crd)).status == 201
    await api.define(crd)
    assert (await api.delete(f"{CRDS}/widgets.{api.group()}")).status == 200
    await api.eventually(lambda: is_undefined(api))
    kept = await api.get(f"{SERVICES}/v1.{api.group()}")
    assert kept.json["spec"] == spec
    await api.delete(f"{SERVICES}/v1.{api.group()}")


async def is_undefined(api: Api) -> bool:
    return (await api.get(f"{CRDS}/widgets.{api.group()}")).status == 404
