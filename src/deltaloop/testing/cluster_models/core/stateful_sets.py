"""StatefulSet controller: numbered Pods in order, with claims that outlive them.

Source: pkg/controller/statefulset: stateful_set_control.go (``updateStatefulSet``), stateful_set_utils.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, items, mapping, string_map, text
from deltaloop.testing.cluster_models.core.agenda import EnvironmentStep
from deltaloop.testing.cluster_models.core.cluster_view import (
    ClusterObject,
    ClusterView,
    creates,
    deletes,
    hash_of,
    reference_of,
    reports,
)
from deltaloop.testing.cluster_models.core.pods import available, is_active, is_ready
from deltaloop.testing.cluster_models.core.replica_sets import metadata_of

_REVISION: Final = "controller-revision-hash"


def stateful_sets(view: ClusterView) -> list[EnvironmentStep]:
    return [step for each in view.of(kinds.STATEFUL_SET) for step in _of(each, view)]


def _of(owner: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    pods = {_number(owner, pod): pod for pod in view.controlled_by(owner, kinds.POD)}
    steps = _status(owner, pods, view)
    if owner.deleted:
        return steps
    revision = f"{owner.name}-{hash_of(owner.spec.get('template'))}"
    known = {each.name: each for each in view.controlled_by(owner, kinds.CONTROLLER_REVISION)}
    if revision not in known:
        number = max((integer(each.fields.get("revision")) for each in known.values()), default=0) + 1
        body: dict[str, object] = {
            "metadata": {"labels": _labels(owner), "ownerReferences": [reference_of(owner)]},
            "data": {"spec": {"template": {**mapping(owner.spec.get("template")), "$patch": "replace"}}},
            "revision": number,
        }
        told = f"{owner} records its revision {number}"
        return [*steps, creates(owner, kinds.CONTROLLER_REVISION, body, told, name=revision)]
    if text(owner.status.get("updateRevision")) != revision:
        return steps  # they write the update revision
    scaling, is_steady = _scale(owner, pods, known, view)
    updating = _update(owner, pods) if is_steady else []
    return [*steps, *scaling, *updating, *_left_over(owner, pods, view)]


def _first(owner: ClusterObject) -> int:
    return integer(at(owner.spec, "ordinals", "start"))


def _numbers(owner: ClusterObject) -> range:
    return range(_first(owner), _first(owner) + integer(owner.spec.get("replicas")))


def _number(owner: ClusterObject, pod: ClusterObject) -> int:
    said = pod.name.removeprefix(f"{owner.name}-")
    return int(said) if said.isdecimal() else -1


def _labels(owner: ClusterObject) -> dict[str, str]:
    return string_map(at(owner.spec, "selector", "matchLabels"))


def _in_turn(owner: ClusterObject) -> bool:
    return owner.spec.get("podManagementPolicy") != "Parallel"


def _partition(owner: ClusterObject) -> int:
    return _first(owner) + integer(at(owner.spec, "updateStrategy", "rollingUpdate", "partition"))


def _scale(
    owner: ClusterObject, pods: dict[int, ClusterObject], known: dict[str, ClusterObject], view: ClusterView
) -> tuple[list[EnvironmentStep], bool]:
    """Return steps that create and delete Pods, by default one at a time in order, and whether Pods can be updated."""
    steps: list[EnvironmentStep] = []
    for number in _numbers(owner):
        pod = pods.get(number)
        if pod is None:
            steps += _made(owner, number, known, view)
        elif not pod.deleted and not is_active(pod):
            steps.append(deletes(pod, f"{owner} recreates {pod}, which has ended"))
        elif is_active(pod) and is_ready(pod):
            continue
        elif pod.phase == "Pending":
            steps += _claims(owner, number, view)[0]
        if _in_turn(owner):
            return steps, False
    condemned = sorted((number for number in pods if number not in _numbers(owner)), reverse=True)
    for number in condemned:
        if not pods[number].deleted:
            steps.append(deletes(pods[number], f"{owner} deletes {pods[number]}"))
        if _in_turn(owner):
            return steps, False
    return steps, not steps


def _made(
    owner: ClusterObject, number: int, known: dict[str, ClusterObject], view: ClusterView
) -> list[EnvironmentStep]:
    """Return steps that create a Pod, after its claims exist and are not being deleted."""
    name = f"{owner.name}-{number}"
    steps, claims = _claims(owner, number, view)
    there = [view.find(kinds.PERSISTENT_VOLUME_CLAIM, owner.namespace, claim) for claim in claims.values()]
    if steps or any(claim is None or claim.deleted for claim in there):
        return steps
    volumes: list[object] = [
        {"name": purpose, "persistentVolumeClaim": {"claimName": claim}} for purpose, claim in claims.items()
    ]
    return [creates(owner, kinds.POD, _pod(owner, number, volumes, known), f"{owner} creates Pod {name}", name=name)]


def _claims(owner: ClusterObject, number: int, view: ClusterView) -> tuple[list[EnvironmentStep], dict[str, str]]:
    """Return steps that create missing claims of a Pod, and the names of all its claims by template."""
    steps: list[EnvironmentStep] = []
    names: dict[str, str] = {}
    for template in items(owner.spec.get("volumeClaimTemplates")):
        purpose = text(at(template, "metadata", "name"))
        name = names[purpose] = f"{purpose}-{owner.name}-{number}"
        if view.find(kinds.PERSISTENT_VOLUME_CLAIM, owner.namespace, name) is None:
            metadata = {**mapping(at(template, "metadata"))}
            metadata["labels"] = {**string_map(metadata.get("labels")), **_labels(owner)}
            if at(owner.spec, "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete":
                metadata["ownerReferences"] = [reference_of(owner)]
            claim = {"metadata": metadata, "spec": at(template, "spec")}
            told = f"{owner} creates claim {name}"
            steps.append(creates(owner, kinds.PERSISTENT_VOLUME_CLAIM, claim, told, name=name))
    return steps, names


def _pod(
    owner: ClusterObject, number: int, volumes: list[object], known: dict[str, ClusterObject]
) -> dict[str, object]:
    """Return a Pod of the current template; below the partition, of the previous template."""
    template, revision = mapping(owner.spec.get("template")), text(owner.status.get("updateRevision"))
    before = known.get(text(owner.status.get("currentRevision")))
    if number < _partition(owner) and before is not None:
        template = mapping(at(before.fields, "data", "spec", "template"))
        revision = before.name
    metadata = metadata_of(template)
    labels = {
        **string_map(metadata.get("labels")),
        _REVISION: revision,
        "statefulset.kubernetes.io/pod-name": f"{owner.name}-{number}",
        "apps.kubernetes.io/pod-index": str(number),
    }
    spec = mapping(template.get("spec"))
    own = {at(volume, "name") for volume in volumes}
    others = [each for each in items(spec.get("volumes")) if at(each, "name") not in own]
    spec = {**spec, "hostname": f"{owner.name}-{number}", "subdomain": text(owner.spec.get("serviceName"))}
    if volumes or others:
        spec["volumes"] = [*volumes, *others]
    return {"metadata": {**metadata, "labels": labels, "ownerReferences": [reference_of(owner)]}, "spec": spec}


def _update(owner: ClusterObject, pods: dict[int, ClusterObject]) -> list[EnvironmentStep]:
    """Return the step that replaces the last outdated Pod, once the Pods after it are ready."""
    if at(owner.spec, "updateStrategy", "type") == "OnDelete":
        return []
    for number in sorted(pods, reverse=True):
        pod = pods[number]
        if number < _partition(owner) or number not in _numbers(owner):
            continue
        if pod.labels.get(_REVISION) != owner.status.get("updateRevision"):
            return [] if pod.deleted else [deletes(pod, f"{owner} updates {pod}")]
        if not (is_active(pod) and is_ready(pod)):
            return []
    return []


def _left_over(owner: ClusterObject, pods: dict[int, ClusterObject], view: ClusterView) -> list[EnvironmentStep]:
    """Return steps that delete claims of removed Pods, if the retention policy requires it."""
    if at(owner.spec, "persistentVolumeClaimRetentionPolicy", "whenScaled") != "Delete":
        return []
    steps: list[EnvironmentStep] = []
    for template in items(owner.spec.get("volumeClaimTemplates")):
        prefix = f"{text(at(template, 'metadata', 'name'))}-{owner.name}-"
        for claim in view.of(kinds.PERSISTENT_VOLUME_CLAIM):
            number = claim.name.removeprefix(prefix)
            if claim.namespace != owner.namespace or not claim.name.startswith(prefix) or not number.isdecimal():
                continue
            if int(number) not in _numbers(owner) and int(number) not in pods and not claim.deleted:
                steps.append(deletes(claim))
    return steps


def _status(owner: ClusterObject, pods: dict[int, ClusterObject], view: ClusterView) -> list[EnvironmentStep]:
    revision = f"{owner.name}-{hash_of(owner.spec.get('template'))}"
    current = text(owner.status.get("currentRevision")) or revision
    there = [pod for pod in pods.values() if pod.phase != "" and not _is_ended(pod)]
    ready = [pod for pod in there if is_ready(pod)]
    count, marks = available(there, integer(owner.spec.get("minReadySeconds")), view)

    def of(name: str) -> int:
        return sum(pod.labels.get(_REVISION) == name and not pod.deleted for pod in there)

    wanted = integer(owner.spec.get("replicas"))
    updated = of(revision)
    if updated == wanted == len(there) == len(ready) and at(owner.spec, "updateStrategy", "type") != "OnDelete":
        current = revision
    status = {
        **owner.status,
        "observedGeneration": owner.generation,
        "replicas": len(there),
        "readyReplicas": len(ready),
        "availableReplicas": count,
        "currentReplicas": of(current),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": revision,
    }
    return [*marks, *reports(owner, status)]


def _is_ended(pod: ClusterObject) -> bool:
    return pod.phase in ("Succeeded", "Failed")
