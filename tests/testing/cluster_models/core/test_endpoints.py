"""Where the Pods of Services are."""

from __future__ import annotations

from typing import Any

from deltaloop.api import kinds
from tests.testing.cluster_models.core.naive_cluster import LABELS, NaiveCluster

CONTAINER = {"name": "c", "image": "1", "ports": [{"name": "http", "containerPort": 8080}]}


def service(cluster: NaiveCluster, **spec: Any) -> dict[str, Any]:
    ports = [{"name": "web", "port": 80, "targetPort": "http"}, {"name": "other", "port": 81, "protocol": "UDP"}]
    return cluster.create(kinds.SERVICE, "a", spec={"selector": LABELS, "ports": ports, **spec})


def pod(cluster: NaiveCluster, name: str, **spec: Any) -> None:
    cluster.create(kinds.POD, name, metadata={"labels": LABELS}, spec={"containers": [CONTAINER], **spec})


def slice_of(cluster: NaiveCluster) -> dict[str, Any]:
    (found,) = cluster.all(kinds.ENDPOINT_SLICE).values()
    return found


def test_ready_pods_have_ready_endpoints() -> None:
    cluster = NaiveCluster("endpoints", "pods", fails=lambda pod: pod.name == "broken")
    service(cluster)
    pod(cluster, "one", hostname="one", subdomain="a")
    pod(cluster, "broken")
    cluster.create(kinds.POD, "another", spec={"containers": [CONTAINER]})
    cluster.settle()
    found = slice_of(cluster)
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "a"
    assert [each["targetRef"]["name"] for each in found["endpoints"]] == ["broken", "one"]
    assert [each["conditions"]["ready"] for each in found["endpoints"]] == [False, True]
    assert found["endpoints"][1]["hostname"] == "one"
    assert found["ports"] == [
        {"name": "web", "port": 8080, "protocol": "TCP"},
        {"name": "other", "port": 81, "protocol": "UDP"},
    ]
    cluster.delete(kinds.POD, "one")
    cluster.settle()
    assert [each["targetRef"]["name"] for each in slice_of(cluster)["endpoints"]] == ["broken"]


def test_service_can_publish_unready_addresses() -> None:
    cluster = NaiveCluster("endpoints", "pods", fails=lambda _: True)
    service(cluster, publishNotReadyAddresses=True)
    pod(cluster, "one")
    cluster.settle()
    assert slice_of(cluster)["endpoints"][0]["conditions"] == {"ready": True, "serving": True, "terminating": False}


def test_service_without_selector_has_no_endpoint_slice() -> None:
    cluster = NaiveCluster("endpoints")
    service(cluster, selector={})
    cluster.settle()
    assert not cluster.all(kinds.ENDPOINT_SLICE)
