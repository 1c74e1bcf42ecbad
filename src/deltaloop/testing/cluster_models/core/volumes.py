"""Volume controller: bind claims to volumes, and provision volumes for claims without another provisioner.

claim Pending ──▶ an existing volume that fits, or a new one ──▶ both are Bound
claim deleted ──▶ the volume is Released, and deleted if its reclaim policy is Delete
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.schemas.quantity import amount
from deltaloop.testing.cluster_models.core.agenda import EnvironmentStep
from deltaloop.testing.cluster_models.core.cluster_view import (
    REACTS,
    ClusterObject,
    ClusterView,
    creates,
    deletes,
    patches,
    reports,
    selects,
)

PROVISIONER: Final = "deltaloop.dev/environment"
_PROVISIONED: Final = "pv.kubernetes.io/provisioned-by"
_BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


def volumes(view: ClusterView) -> list[EnvironmentStep]:
    steps: list[EnvironmentStep] = []
    for claim in view.of(kinds.PERSISTENT_VOLUME_CLAIM):
        steps += _claimed(claim, view)
    for volume in view.of(kinds.PERSISTENT_VOLUME):
        steps += _of_volume(volume, view)
    return steps


def _claimed(claim: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    name = text(claim.spec.get("volumeName"))
    if claim.deleted:
        return []
    if name:
        volume = next((each for each in view.of(kinds.PERSISTENT_VOLUME) if each.name == name), None)
        if volume is None or at(volume.spec, "claimRef", "uid") not in (None, "", claim.uid):
            return reports(claim, {**claim.status, "phase": "Lost"}) if claim.phase == "Bound" else []
        if at(volume.spec, "claimRef", "uid") != claim.uid:
            return [_reserved(volume, claim)]
        return _bound(claim, volume)
    mine = [each for each in view.of(kinds.PERSISTENT_VOLUME) if _is_for(each, claim)]
    if not mine:
        return _provisioned(claim, view)
    volume = min(mine, key=lambda each: (at(each.spec, "claimRef", "uid") != claim.uid, _capacity(each), each.name))
    if at(volume.spec, "claimRef", "uid") != claim.uid:
        return [_reserved(volume, claim)]
    body = {"metadata": {"annotations": _BOUND}, "spec": {"volumeName": volume.name}}
    return [patches(claim, body, f"{claim} gets volume {volume.name}")]


def _is_for(volume: ClusterObject, claim: ClusterObject) -> bool:
    """Return whether a volume belongs to a claim, or fits it and is free."""
    reference = at(volume.spec, "claimRef")
    if volume.deleted:
        return False
    if reference:
        named = (at(reference, "namespace"), at(reference, "name")) == (claim.namespace, claim.name)
        return named and at(reference, "uid") in (None, "", claim.uid)
    return (
        text(volume.spec.get("storageClassName")) == text(claim.spec.get("storageClassName"))
        and {*texts(claim.spec.get("accessModes"))} <= {*texts(volume.spec.get("accessModes"))}
        and _mode(volume) == _mode(claim)
        and _capacity(volume) >= _requested(claim)
        and (not claim.spec.get("selector") or _is_selected(volume, claim))
    )


def _is_selected(volume: ClusterObject, claim: ClusterObject) -> bool:
    by_expressions = at(claim.spec, "selector", "matchExpressions")  # not modeled
    return not by_expressions and selects(at(claim.spec, "selector", "matchLabels"), volume.labels)


def _mode(obj: ClusterObject) -> str:
    return text(obj.spec.get("volumeMode")) or "Filesystem"


def _capacity(volume: ClusterObject) -> Fraction:
    return amount(at(volume.spec, "capacity", "storage"))


def _requested(claim: ClusterObject) -> Fraction:
    return amount(at(claim.spec, "resources", "requests", "storage"))


def _reserved(volume: ClusterObject, claim: ClusterObject) -> EnvironmentStep:
    return patches(volume, {"spec": {"claimRef": _reference(claim)}}, f"{volume} is kept for {claim}")


def _reference(claim: ClusterObject) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": claim.kind.kind,
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
    }


def _provisioned(claim: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    storage_class = text(claim.spec.get("storageClassName"))
    if any(each.name == storage_class for each in view.of(kinds.STORAGE_CLASS)):
        return []
    name = f"pvc-{claim.uid}"
    spec: dict[str, object] = {
        "capacity": {"storage": at(claim.spec, "resources", "requests", "storage")},
        "accessModes": items(claim.spec.get("accessModes")),
        "claimRef": _reference(claim),
        "persistentVolumeReclaimPolicy": "Delete",
        "volumeMode": _mode(claim),
        "hostPath": {"path": f"/volumes/{name}"},
        **({"storageClassName": storage_class} if storage_class else {}),
    }
    body = {"metadata": {"annotations": {_PROVISIONED: PROVISIONER}}, "spec": spec}
    return [creates(claim, kinds.PERSISTENT_VOLUME, body, f"a volume is created for {claim}", name=name)]


def _bound(claim: ClusterObject, volume: ClusterObject) -> list[EnvironmentStep]:
    asked = at(claim.spec, "resources", "requests", "storage")
    capacity = mapping(volume.spec.get("capacity"))
    if claim.phase == "Bound" and _capacity(volume) < _requested(claim) and _is_ours(volume):
        return [patches(volume, {"spec": {"capacity": {"storage": asked}}}, f"{volume} grows to {asked}")]
    status = {
        **claim.status,
        "phase": "Bound",
        "accessModes": items(volume.spec.get("accessModes")),
        "capacity": capacity,
    }
    return reports(claim, status, f"{claim} is bound")


def _is_ours(volume: ClusterObject) -> bool:
    return volume.annotations.get(_PROVISIONED) == PROVISIONER


def _of_volume(volume: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    reference = at(volume.spec, "claimRef")
    uid = text(at(reference, "uid"))
    if volume.deleted:
        return []
    if not uid:
        return reports(volume, {**volume.status, "phase": "Available"})
    claim = view.find(kinds.PERSISTENT_VOLUME_CLAIM, text(at(reference, "namespace")), text(at(reference, "name")))
    if claim is not None and claim.uid == uid:
        bound = claim.spec.get("volumeName") == volume.name
        return reports(volume, {**volume.status, "phase": "Bound"}) if bound else []
    if volume.phase != "Released":
        return reports(volume, {**volume.status, "phase": "Released"}, f"{volume} is released")
    gone = volume.spec.get("persistentVolumeReclaimPolicy") == "Delete" and _is_ours(volume)
    return [deletes(volume, takes=(10 * REACTS[0], 10 * REACTS[1]))] if gone else []
