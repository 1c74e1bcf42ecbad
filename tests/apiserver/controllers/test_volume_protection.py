"""Claims, volumes and classes of volume attributes that are being deleted, over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.apiserver.serving import PODS, Caller, serving

PROTECTED = frozenset({"volume-protection"})
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/volumeattributesclasses"


def claim(name: str, **more: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **more.pop("spec", {})}
    return {"metadata": {"name": name, **more}, "spec": spec}


def volume(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    return {"metadata": {"name": name}, "spec": spec}


def pod(name: str, used: dict[str, Any], **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "web:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, "volumes": [{"name": "v", **used}], **spec}}


async def is_there(call: Caller, path: str) -> bool:
    await asyncio.sleep(0.01)
    return (await call.get(path)).status == 200


async def test_unused_objects_are_deleted() -> None:
    async with serving(controllers=PROTECTED) as on:
        await on.call.created(CLAIMS, claim("c", finalizers=["example.com/hold"]))
        await on.call.created(VOLUMES, volume("v"))
        await on.call.created(
            CLASSES, {"metadata": {"name": "a"}, "driverName": "d.example.com", "parameters": {"a": "b"}}
        )
        for path in (f"{CLAIMS}/c", f"{VOLUMES}/v", f"{CLASSES}/a"):
            assert await is_there(on.call, path)
            await on.call.delete(path)
        assert (await on.call.get(f"{CLAIMS}/c")).json["metadata"]["finalizers"] == ["example.com/hold"]
        await on.call.patch(f"{CLAIMS}/c", {"metadata": {"finalizers": None}})
        for path in (f"{CLAIMS}/c", f"{VOLUMES}/v", f"{CLASSES}/a"):
            assert not await is_there(on.call, path)


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
async def test_claim_is_kept_while_a_scheduled_pod_uses_it(phase: str) -> None:
    async with serving(controllers=PROTECTED) as on:
        await on.call.created(CLAIMS, claim("c"))
        used = {"persistentVolumeClaim": {"claimName": "c"}}
        await on.call.created(PODS, pod("p", used, nodeName="n"))
        await on.call.patch(f"{PODS}/p/status", {"status": {"phase": phase}})
        await on.call.delete(f"{CLAIMS}/c")
        assert await is_there(on.call, f"{CLAIMS}/c")
        await on.call.delete(f"{PODS}/p?gracePeriodSeconds=0")
        assert not await is_there(on.call, f"{CLAIMS}/c")


@pytest.mark.parametrize(
    ("used", "spec", "namespace"),
    [
        ({"persistentVolumeClaim": {"claimName": "c"}}, {}, "default"),
        ({"persistentVolumeClaim": {"claimName": "d"}}, {"nodeName": "n"}, "default"),
        ({"persistentVolumeClaim": {"claimName": "c"}}, {"nodeName": "n"}, "other"),
        ({"ephemeral": {"volumeClaimTemplate": {"spec": claim("")["spec"]}}}, {"nodeName": "n"}, "default"),
    ],
    ids=["waits for a node", "another claim", "another namespace", "a claim that is not the pod's"],
)
async def test_finished_and_unscheduled_pods_do_not_protect_a_claim(
    used: dict[str, Any], spec: dict[str, Any], namespace: str
) -> None:
    name = "p-v" if "ephemeral" in used else "c"
    async with serving(controllers=PROTECTED) as on:
        await on.call.created("/api/v1/namespaces", {"metadata": {"name": "other"}})
        await on.call.created(CLAIMS, claim(name))
        await on.call.created(f"/api/v1/namespaces/{namespace}/pods", pod("p", used, **spec))
        await on.call.delete(f"{CLAIMS}/{name}")
        assert not await is_there(on.call, f"{CLAIMS}/{name}")


async def test_claim_of_ephemeral_volume_is_kept_with_its_pod() -> None:
    async with serving(controllers=PROTECTED) as on:
        used = {"ephemeral": {"volumeClaimTemplate": {"spec": claim("")["spec"]}}}
        made = await on.call.created(PODS, pod("p", used, nodeName="n"))
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made.json["metadata"]["uid"]}
        await on.call.created(CLAIMS, claim("p-v", ownerReferences=[owner]))
        await on.call.delete(f"{CLAIMS}/p-v")
        assert await is_there(on.call, f"{CLAIMS}/p-v")


async def test_volume_is_kept_while_bound() -> None:
    async with serving(controllers=PROTECTED) as on:
        await on.call.created(VOLUMES, volume("v"))
        await on.call.patch(f"{VOLUMES}/v/status", {"status": {"phase": "Bound"}})
        await on.call.delete(f"{VOLUMES}/v")
        assert await is_there(on.call, f"{VOLUMES}/v")
        await on.call.patch(f"{VOLUMES}/v/status", {"status": {"phase": "Released"}})
        assert not await is_there(on.call, f"{VOLUMES}/v")


async def test_class_is_kept_while_a_claim_or_volume_references_it() -> None:
    async with serving(controllers=PROTECTED) as on:
        for name in "abcd":
            body = {"metadata": {"name": name}, "driverName": "d.example.com", "parameters": {"a": "b"}}
            await on.call.created(CLASSES, body)
        await on.call.created(CLAIMS, claim("c", spec={"volumeAttributesClassName": "a"}))
        bound = volume("v")
        csi = {"driver": "d.example.com", "volumeHandle": "x"}
        bound["spec"] = {**bound["spec"], "csi": csi, "volumeAttributesClassName": "b"}
        del bound["spec"]["hostPath"]
        await on.call.created(VOLUMES, bound)
        await on.call.patch(f"{CLAIMS}/c/status", {"status": {"currentVolumeAttributesClassName": "c"}})
        for name in "abcd":
            await on.call.delete(f"{CLASSES}/{name}")
        await asyncio.sleep(0.01)
        assert (await on.call.get(CLASSES)).names == ["a", "b", "c"]
