"""Claims and volumes."""

from __future__ import annotations

from typing import Any

from deltaloop.api import kinds
from tests.testing.cluster_models.core.naive_cluster import NaiveCluster

CLAIM, VOLUME = kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME


def claim(cluster: NaiveCluster, name: str = "a", **spec: Any) -> dict[str, Any]:
    fields = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return cluster.create(CLAIM, name, spec=fields)


def volume(cluster: NaiveCluster, name: str, **spec: Any) -> dict[str, Any]:
    fields = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, **spec}
    return cluster.create(VOLUME, name, spec=fields)


def test_claim_gets_own_volume_that_is_deleted_with_it() -> None:
    cluster = NaiveCluster("volumes")
    found = claim(cluster)
    cluster.settle()
    (made,) = cluster.all(VOLUME).values()
    assert found["spec"]["volumeName"] == made["metadata"]["name"] == f"pvc-{found['metadata']['uid']}"
    assert (found["status"]["phase"], made["status"]["phase"]) == ("Bound", "Bound")
    assert found["status"]["capacity"] == {"storage": "1Gi"}
    cluster.delete(CLAIM, "a")
    cluster.settle()
    assert not cluster.all(VOLUME)


def test_fitting_volume_is_bound_once_and_retained() -> None:
    cluster = NaiveCluster("volumes")
    volume(cluster, "small", capacity={"storage": "1Mi"})
    fits = volume(cluster, "fits")
    one, two = claim(cluster, "one"), claim(cluster, "two")
    cluster.settle()
    assert one["spec"]["volumeName"] != two["spec"]["volumeName"]
    assert "fits" in (one["spec"]["volumeName"], two["spec"]["volumeName"])
    owner = fits["spec"]["claimRef"]["name"]
    cluster.delete(CLAIM, owner)
    cluster.settle()
    assert fits["status"]["phase"] == "Released"
    assert cluster.get(VOLUME, "small")["status"]["phase"] == "Available"
    claim(cluster, "three")
    cluster.settle()
    assert fits["status"]["phase"] == "Released"


def test_claim_gets_smallest_sufficient_volume() -> None:
    cluster = NaiveCluster("volumes")
    cluster.create(kinds.STORAGE_CLASS, "ours", provisioner="example.com/ours")
    for name, size in (("a-large", "10Gi"), ("b-fits", "1500Mi"), ("c-small", "900Mi")):
        volume(cluster, name, capacity={"storage": size}, storageClassName="ours")
    volume(cluster, "d-block", capacity={"storage": "1Gi"}, storageClassName="ours", volumeMode="Block")
    found = claim(cluster, storageClassName="ours")
    selected = claim(cluster, "b", storageClassName="ours", selector={"matchLabels": {"disk": "fast"}})
    cluster.settle()
    assert (found["status"]["phase"], found["spec"]["volumeName"]) == ("Bound", "b-fits")
    assert found["status"]["capacity"] == {"storage": "1500Mi"}
    assert selected["status"]["phase"] == "Pending"


def test_claim_with_storage_class_waits_for_provisioner() -> None:
    cluster = NaiveCluster("volumes")
    cluster.create(kinds.STORAGE_CLASS, "ours", provisioner="example.com/ours")
    found = claim(cluster, storageClassName="ours")
    claim(cluster, "unknown", storageClassName="theirs")
    cluster.settle()
    assert found["status"]["phase"] == "Pending"
    assert cluster.get(CLAIM, "unknown")["status"]["phase"] == "Bound"
    reference = {"namespace": "", "name": "a", "uid": found["metadata"]["uid"]}
    volume(cluster, "made", claimRef=reference, storageClassName="ours")
    cluster.settle()
    assert (found["status"]["phase"], found["spec"]["volumeName"]) == ("Bound", "made")


def test_claim_with_volume_name_is_lost_with_volume() -> None:
    cluster = NaiveCluster("volumes")
    volume(cluster, "mine", storageClassName="special")
    found = claim(cluster, volumeName="mine")
    cluster.settle()
    assert found["status"]["phase"] == "Bound"
    cluster.delete(VOLUME, "mine")
    cluster.settle()
    assert found["status"]["phase"] == "Lost"


def test_volume_can_grow() -> None:
    cluster = NaiveCluster("volumes")
    found = claim(cluster)
    cluster.settle()
    cluster.patch(CLAIM, "a", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    cluster.settle()
    (made,) = cluster.all(VOLUME).values()
    assert made["spec"]["capacity"] == found["status"]["capacity"] == {"storage": "2Gi"}


def test_terminating_claim_is_not_changed() -> None:
    cluster = NaiveCluster("volumes")
    claim(cluster)["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    cluster.delete(CLAIM, "a")
    held = volume(cluster, "held", claimRef={"namespace": "", "name": "gone", "uid": "gone"})
    held["metadata"]["finalizers"] = ["kubernetes.io/pv-protection"]
    cluster.delete(VOLUME, "held")
    cluster.settle()
    assert cluster.log == []
