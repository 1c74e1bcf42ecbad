from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.answers.table import to_table
from deltaloop.apiserver.core.kinds.cells import declared_cell, format_selector
from deltaloop.apiserver.core.kinds.resources import STRATEGIES
from deltaloop.apiserver.core.served_resource import ServedResource
from tests.apiserver.core.built_in import BUILT_IN_RESOURCES

NOW = 3600.0
CREATED = "1970-01-01T00:59:00Z"
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}]},
}
SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}


_SERVED = {(served.type.api_version, served.type.kind): served for served in BUILT_IN_RESOURCES}


def cells(served: ServedResource, obj: dict[str, Any]) -> dict[str, Any]:
    table = to_table(served, [obj], now=NOW)
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][0]["cells"], strict=True))


def row(kind: ResourceType[Any], **fields: Any) -> dict[str, Any]:
    metadata = {"name": "n", "creationTimestamp": CREATED, **fields.pop("metadata", {})}
    return cells(_SERVED[kind.api_version, kind.kind], {"metadata": metadata, **fields})


_ROWS: list[tuple[ResourceType[Any], dict[str, Any], dict[str, Any]]] = [
    (
        kinds.DEPLOYMENT,
        {
            "spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE},
            "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
        },
        {
            "Name": "n",
            "Ready": "1/3",
            "Up-to-date": 2,
            "Available": 1,
            "Age": "60s",
            "Containers": "a,b",
            "Images": "x:1,y:2",
            "Selector": "app=web,tier",
        },
    ),
    (kinds.DEPLOYMENT, {}, {"Ready": "0/1", "Up-to-date": 0, "Selector": ""}),
    (kinds.DEPLOYMENT, {"spec": {"replicas": 0}}, {"Ready": "0/0"}),
    (
        kinds.REPLICA_SET,
        {"spec": {"replicas": 2, "selector": SELECTOR}, "status": {"replicas": 1, "readyReplicas": 1}},
        {"Desired": 2, "Current": 1, "Ready": 1, "Selector": "app=web,tier"},
    ),
    (
        kinds.REPLICATION_CONTROLLER,
        {"spec": {"selector": {"b": "2", "a": "1"}}},
        {"Desired": 1, "Selector": "a=1,b=2"},
    ),
    (kinds.STATEFUL_SET, {"spec": {"replicas": 2}, "status": {"readyReplicas": 2}}, {"Ready": "2/2"}),
    (
        kinds.DAEMON_SET,
        {"status": {"desiredNumberScheduled": 3, "numberAvailable": 1}},
        {"Desired": 3, "Current": 0, "Available": 1, "Node Selector": "<none>"},
    ),
    (
        kinds.JOB,
        {
            "spec": {"completions": 2},
            "status": {
                "succeeded": 2,
                "startTime": "1970-01-01T00:00:00Z",
                "completionTime": "1970-01-01T00:05:30Z",
                "conditions": [{"type": "Complete", "status": "True"}],
            },
        },
        {"Status": "Complete", "Completions": "2/2", "Duration": "5m30s"},
    ),
    (
        kinds.JOB,
        {"spec": {"parallelism": 3}, "status": {"startTime": "1970-01-01T00:59:30Z"}},
        {"Status": "Running", "Completions": "0/1 of 3", "Duration": "30s"},
    ),
    (kinds.JOB, {"metadata": {"deletionTimestamp": CREATED}}, {"Status": "Terminating", "Duration": ""}),
    (
        kinds.CRON_JOB,
        {"spec": {"schedule": "* * * * *", "suspend": False}, "status": {"active": [{}]}},
        {"Schedule": "* * * * *", "Timezone": "<none>", "Suspend": "False", "Active": 1, "Last Schedule": "<none>"},
    ),
    (
        kinds.SERVICE,
        {
            "spec": {
                "type": "NodePort",
                "clusterIP": "10.0.0.1",
                "ports": [
                    {"port": 80, "nodePort": 30080, "protocol": "TCP"},
                    {"port": 53, "protocol": "UDP"},
                ],
                "selector": {"app": "web"},
            }
        },
        {
            "Type": "NodePort",
            "Cluster-IP": "10.0.0.1",
            "External-IP": "<none>",
            "Port(s)": "80:30080/TCP,53/UDP",
            "Selector": "app=web",
        },
    ),
    (kinds.SERVICE, {"spec": {"type": "LoadBalancer"}}, {"External-IP": "<pending>", "Port(s)": "<none>"}),
    (
        kinds.SERVICE,
        {
            "spec": {"type": "LoadBalancer", "externalIPs": ["9.9.9.9"]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "lb"}, {"ip": "1.1.1.1"}]}},
        },
        {"External-IP": "1.1.1.1,lb,9.9.9.9"},
    ),
    (kinds.SERVICE, {"spec": {"type": "ExternalName", "externalName": "db"}}, {"External-IP": "db"}),
    (
        kinds.INGRESS,
        {"spec": {"rules": [{"host": host} for host in "abcde"], "tls": [{}], "ingressClassName": "nginx"}},
        {"Class": "nginx", "Hosts": "a,b,c + 2 more...", "Address": "", "Ports": "80, 443"},
    ),
    (kinds.INGRESS, {}, {"Class": "<none>", "Hosts": "*", "Ports": "80"}),
    (
        kinds.ENDPOINTS,
        {"subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(5)], "ports": [{"port": 80}]}]},
        {"Endpoints": "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more..."},
    ),
    (kinds.ENDPOINTS, {}, {"Endpoints": "<none>"}),
    (
        kinds.ENDPOINT_SLICE,
        {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.0.0.1"]}]},
        {"AddressType": "IPv4", "Ports": "80", "Endpoints": "10.0.0.1"},
    ),
    (kinds.ENDPOINT_SLICE, {}, {"Ports": "<unset>", "Endpoints": "<unset>"}),
    (
        kinds.NODE,
        {
            "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "master"}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.36.0"},
            },
        },
        {
            "Status": "Ready,SchedulingDisabled",
            "Roles": "master,worker",
            "Version": "v1.36.0",
            "Internal-IP": "10.0.0.1",
            "External-IP": "<none>",
            "OS-Image": "<unknown>",
        },
    ),
    (kinds.NODE, {}, {"Status": "Unknown", "Roles": "<none>"}),
    (
        kinds.EVENT,
        {
            "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
            "type": "Normal",
            "reason": "Started",
            "message": " hello\n",
            "count": 3,
            "firstTimestamp": "1970-01-01T00:50:00Z",
            "lastTimestamp": "1970-01-01T00:59:50Z",
            "source": {"component": "kubelet", "host": "node1"},
        },
        {
            "Last Seen": "10s",
            "Type": "Normal",
            "Reason": "Started",
            "Object": "pod/p",
            "Subobject": "spec",
            "Source": "kubelet, node1",
            "Message": "hello",
            "First Seen": "10m",
            "Count": 3,
            "Name": "n",
        },
    ),
    (
        kinds.EVENTS_V1_EVENT,
        {
            "regarding": {"kind": "Pod"},
            "note": "hi",
            "eventTime": "1970-01-01T00:59:00.000001Z",
            "series": {"count": 9, "lastObservedTime": "1970-01-01T00:59:58.000000Z"},
            "reportingController": "me",
        },
        {"Last Seen": "2s", "Object": "pod", "Message": "hi", "First Seen": "59s", "Count": 9, "Source": "me"},
    ),
    (kinds.EVENT, {}, {"Last Seen": "<unknown>", "Count": 1}),
    (kinds.NAMESPACE, {"status": {"phase": "Active"}}, {"Name": "n", "Status": "Active", "Age": "60s"}),
    (kinds.CONFIG_MAP, {"data": {"a": "1"}, "binaryData": {"b": "2"}}, {"Data": 2}),
    (kinds.SECRET, {"type": "Opaque", "data": {"a": "1"}}, {"Type": "Opaque", "Data": 1}),
    (kinds.SERVICE_ACCOUNT, {}, {"Name": "n", "Age": "60s"}),
    (kinds.LEASE, {"spec": {"holderIdentity": "me"}}, {"Holder": "me", "Age": "60s"}),
    (
        kinds.PERSISTENT_VOLUME_CLAIM,
        {
            "spec": {"volumeName": "v", "storageClassName": "fast"},
            "status": {
                "phase": "Bound",
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce", "ReadWriteOnce", "ReadOnlyMany"],
            },
        },
        {"Status": "Bound", "Volume": "v", "Capacity": "1Gi", "Access Modes": "RWO,ROX", "StorageClass": "fast"},
    ),
    (
        kinds.PERSISTENT_VOLUME,
        {"spec": {"capacity": {"storage": "1Gi"}, "claimRef": {"namespace": "d", "name": "c"}}},
        {"Capacity": "1Gi", "Claim": "d/c", "VolumeMode": "<unset>"},
    ),
    (
        kinds.ROLE_BINDING,
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [
                {"kind": "User", "name": "u1"},
                {"kind": "User", "name": "u2"},
                {"kind": "ServiceAccount", "namespace": "d", "name": "s"},
            ],
        },
        {"Role": "Role/r", "Users": "u1, u2", "Groups": "", "ServiceAccounts": "d/s"},
    ),
    (
        kinds.POD_DISRUPTION_BUDGET,
        {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}},
        {"Min Available": "50%", "Max Unavailable": "N/A", "Allowed Disruptions": 1},
    ),
    (
        kinds.CONTROLLER_REVISION,
        {
            "metadata": {
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "controller": True}]
            },
            "revision": 2,
        },
        {"Controller": "statefulset.apps/s", "Revision": 2},
    ),
    (
        kinds.STORAGE_CLASS,
        {"provisioner": "p"},
        {"Provisioner": "p", "ReclaimPolicy": "Delete", "AllowVolumeExpansion": False},
    ),
    (kinds.PRIORITY_CLASS, {"value": 5}, {"Value": 5, "Global-Default": False}),
    (kinds.NETWORK_POLICY, {"spec": {"podSelector": {}}}, {"Pod-Selector": "<none>"}),
    (kinds.POD_TEMPLATE, {"template": TEMPLATE}, {"Containers": "a,b", "Pod Labels": "app=web"}),
    (kinds.MUTATING_WEBHOOK_CONFIGURATION, {"webhooks": [{}, {}]}, {"Webhooks": 2}),
    (kinds.CUSTOM_RESOURCE_DEFINITION, {}, {"Name": "n", "Created At": CREATED}),
    (kinds.ROLE, {}, {"Name": "n", "Created At": CREATED}),
]


@pytest.mark.parametrize(("kind", "fields", "wanted"), _ROWS)
def test_cells(kind: ResourceType[Any], fields: dict[str, Any], wanted: dict[str, Any]) -> None:
    found = row(kind, **fields)
    assert {name: found[name] for name in wanted} == wanted


_SHARED = {"Name", "Age", "Created At"}
_LISTED = [served for served in BUILT_IN_RESOURCES if len(served.columns) > 1]


def test_every_column_has_a_cell_and_every_cell_a_column() -> None:
    for served in _LISTED:
        names = {column.name for column in served.columns}
        own = {*served.cells, *served.strategy.cells, *served.strategy.timed_cells({}, NOW)}
        assert not {*served.cells} & {*served.strategy.cells}, served.type
        assert own <= names, served.type
        assert names <= own | _SHARED, served.type
        # What says otherwise of its name is so on the real server, too.
        wanted = "" if served.type.kind == "StorageVersionMigration" else "name"
        assert [column.format for column in served.columns if column.name == "Name"] == [wanted], served.type


def test_every_strategy_belongs_to_a_served_kind() -> None:
    used = {id(served.strategy) for served in BUILT_IN_RESOURCES}
    assert not [name for name, strategy in STRATEGIES.items() if id(strategy) not in used]


_OBJECT: dict[str, Any] = {
    "a": {
        "text": "x",
        "empty": "",
        "number": 3,
        "yes": True,
        "no": False,
        "texts": ["x", "y"],
        "map": {"b": "1", "a": "2"},
    },
    "template": TEMPLATE,
    "selector": SELECTOR,
    "time": CREATED,
    "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a.text", "x"),
        ("a.empty or none", "none"),
        ("a.missing", ""),
        ("value a.number or none", "3"),
        ("value a.no or none", "False"),
        ("value a.missing or none", "none"),
        ("number a.number", 3),
        ("number a.missing", 0),
        ("number a.missing or none", "none"),
        ("count a.texts", 2),
        ("count a.map", 2),
        ("count a.missing", 0),
        ("true a.yes", True),
        ("true a.no", False),
        ("joined a.texts", "x,y"),
        ("joined a.missing or none", "none"),
        ("labels a.map", "a=2,b=1"),
        ("labels a.missing", "<none>"),
        ("selector selector", "app=web,tier"),
        ("containers template", "a,b"),
        ("images template", "x:1,y:2"),
        ("age time", "60s"),
        ("age a.missing or none", "none"),
        ("condition A or ?", "False"),
        ("condition C or ?", "?"),
        ("state A,B or none", "B"),
        ("state A or none", "none"),
    ],
)
def test_declared_cell_values(words: str, shown: object) -> None:
    found = declared_cell(words)(_OBJECT, NOW)
    assert (type(found), found) == (type(shown), shown)


def test_unknown_cell_format_is_in_the_error() -> None:
    with pytest.raises(KeyError, match="riddle"):
        declared_cell("riddle a.text")


def test_selector_is_formatted_for_the_command_line() -> None:
    expressions = [
        {"key": "b", "operator": "In", "values": ["y", "x"]},
        {"key": "c", "operator": "NotIn", "values": ["z"]},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    selector = {"matchLabels": {"a": "1"}, "matchExpressions": expressions}
    assert format_selector(selector) == "a=1,b in (x,y),c notin (z),!d"
    assert format_selector({"matchExpressions": [{"key": "a", "operator": "Like"}]}) == "<error>"


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.text("ab", max_size=2), below, max_size=2),
    max_leaves=4,
)
_FIELDS = (
    "metadata",
    "spec",
    "status",
    "subsets",
    "ports",
    "endpoints",
    "involvedObject",
    "series",
    "subjects",
    "data",
)
_PARTS = ("conditions", "template", "containerStatuses", "initContainerStatuses", "rules", "loadBalancer", "labels")


@given(
    st.sampled_from(BUILT_IN_RESOURCES),
    st.dictionaries(st.sampled_from(_FIELDS), _json | st.dictionaries(st.sampled_from(_PARTS), _json, max_size=3)),
)
def test_any_object_has_a_row(served: Any, obj: dict[str, Any]) -> None:
    assert len(cells(served, obj)) == len(served.columns)
