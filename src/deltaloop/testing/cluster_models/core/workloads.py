"""Controllers of ReplicaSets, Deployments and StatefulSets.

Source: pkg/controller/deployment: rolling.go, recreate.go, progress.go, util/deployment_util.go;
pkg/controller/statefulset: stateful_set_control.go (``updateStatefulSet``), stateful_set_utils.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, items, mapping, string_map, text
from deltaloop.testing.cluster_models.core.cluster_view import (
    ClusterObject,
    ClusterView,
    EnvironmentStep,
    conditions,
    creates,
    deletes,
    hash_of,
    patches,
    reference_of,
    reports,
)
from deltaloop.testing.cluster_models.core.pods import available, is_active, is_ready

_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


def replica_sets(view: ClusterView) -> list[EnvironmentStep]:
    return [step for each in view.of(kinds.REPLICA_SET) for step in _of(each, view)]


def _of(owner: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    pods = [pod for pod in view.controlled_by(owner, kinds.POD) if is_active(pod)]
    wanted = integer(owner.spec.get("replicas"))
    steps: list[EnvironmentStep] = []
    if not owner.deleted:
        body = pod_of(owner)
        numbers = range(len(pods) + 1, wanted + 1)
        steps += [creates(owner, kinds.POD, body, f"{owner} creates Pod {number} of {wanted}") for number in numbers]
        surplus = sorted(pods, key=_worth)[: max(0, len(pods) - wanted)]
        steps += [deletes(pod, f"{owner} deletes {pod}") for pod in surplus]
    count, marks = available(pods, integer(owner.spec.get("minReadySeconds")), view)
    labels = string_map(at(owner.spec, "template", "metadata", "labels"))
    status = {
        **owner.status,
        "replicas": len(pods),
        "fullyLabeledReplicas": sum(labels.items() <= pod.labels.items() for pod in pods),
        "readyReplicas": sum(map(is_ready, pods)),
        "availableReplicas": count,
        "observedGeneration": owner.generation,
    }
    return [*steps, *marks, *reports(owner, status)]


def _worth(pod: ClusterObject) -> tuple[bool, bool, bool, int, str, str]:
    """Return the sort key for deletion: least useful Pods first, and younger before older Pods."""
    cost = pod.annotations.get(_COST, "0")
    given = int(cost) if cost.removeprefix("-").isdecimal() else 0
    made = "".join(chr(0x10FFFF - ord(sign)) for sign in text(pod.metadata.get("creationTimestamp")))
    return bool(pod.spec.get("nodeName")), pod.phase == "Running", is_ready(pod), given, made, pod.name


def metadata_of(template: object) -> dict[str, object]:
    metadata = mapping(at(template, "metadata"))
    return {name: metadata[name] for name in ("labels", "annotations", "finalizers") if metadata.get(name)}


def pod_of(owner: ClusterObject) -> dict[str, object]:
    """Return a Pod of an owner's template, with a generated name."""
    template = mapping(owner.spec.get("template"))
    metadata = metadata_of(template)
    metadata |= {"generateName": f"{owner.name}-", "ownerReferences": [reference_of(owner)]}
    return {"metadata": metadata, "spec": mapping(template.get("spec"))}


_HASH: Final = "pod-template-hash"
_REVISION: Final = "deployment.kubernetes.io/revision"
_HISTORY: Final = 10


def deployments(view: ClusterView) -> list[EnvironmentStep]:
    return [step for each in view.of(kinds.DEPLOYMENT) for step in _deployments_of(each, view)]


def _deployments_of(owner: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    sets = view.controlled_by(owner, kinds.REPLICA_SET)
    wanted = _template(owner)
    new = next((each for each in sets if _template(each) == wanted), None)
    old = [each for each in sets if each is not new]
    steps = _status(owner, new, sets, view)
    if owner.deleted:
        return steps
    if owner.spec.get("paused"):
        active = [each for each in (*old, *([new] if new else [])) if _size(each)]
        return [*steps, *(_scaled(owner, active[0], integer(owner.spec.get("replicas"))) if len(active) == 1 else [])]
    if at(owner.spec, "strategy", "type") == "Recreate":
        return [*steps, *_recreate(owner, new, old, view)]
    return [*steps, *_roll(owner, new, old), *_forgotten(owner, old)]


def _template(obj: ClusterObject) -> dict[str, object]:
    """Return the Pod template without the hash label that distinguishes ReplicaSets."""
    template = mapping(obj.spec.get("template"))
    metadata = mapping(template.get("metadata"))
    labels = {name: value for name, value in string_map(metadata.get("labels")).items() if name != _HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _size(each: ClusterObject) -> int:
    return integer(each.spec.get("replicas"))


def _ready(each: ClusterObject) -> int:
    return integer(each.status.get("availableReplicas"))


def _revision(each: ClusterObject) -> int:
    said = each.annotations.get(_REVISION, "0")
    return int(said) if said.isdecimal() else 0


def _made(owner: ClusterObject, old: Sequence[ClusterObject], size: int) -> list[EnvironmentStep]:
    template = mapping(owner.spec.get("template"))
    digest = hash_of(_template(owner))
    labels = {**string_map(at(template, "metadata", "labels")), _HASH: digest}
    selector = mapping(owner.spec.get("selector"))
    revision = max(map(_revision, old), default=0) + 1
    body: dict[str, object] = {
        "metadata": {
            "labels": labels,
            "annotations": _told(owner) | {_REVISION: str(revision)},
            "ownerReferences": [reference_of(owner)],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": integer(owner.spec.get("minReadySeconds")),
            "selector": {**selector, "matchLabels": {**string_map(selector.get("matchLabels")), _HASH: digest}},
            "template": {**template, "metadata": {**mapping(template.get("metadata")), "labels": labels}},
        },
    }
    name = f"{owner.name}-{digest}"
    return [creates(owner, kinds.REPLICA_SET, body, f"{owner} creates ReplicaSet {name}", name=name)]


def _told(owner: ClusterObject) -> dict[str, str]:
    wanted = integer(owner.spec.get("replicas"))
    surge, _ = _bounds(owner)
    prefix = "deployment.kubernetes.io"
    return {f"{prefix}/desired-replicas": str(wanted), f"{prefix}/max-replicas": str(wanted + surge)}


def _scaled(owner: ClusterObject, each: ClusterObject, size: int) -> list[EnvironmentStep]:
    said = _told(owner)
    if _size(each) == size and all(each.annotations.get(name) == value for name, value in said.items()):
        return []
    body = {"metadata": {"annotations": said}, "spec": {"replicas": size}}
    return [patches(each, body, f"{owner} has {each} have {size} Pods")]


def _noted(owner: ClusterObject, new: ClusterObject, old: Sequence[ClusterObject]) -> list[EnvironmentStep]:
    """Return steps that update revision numbers; a template that is used again gets the newest revision."""
    latest = max(map(_revision, old), default=0)
    if _revision(new) <= latest:
        return [patches(new, {"metadata": {"annotations": {_REVISION: str(latest + 1)}}}, f"{new} becomes the newest")]
    said = new.annotations[_REVISION]
    if owner.annotations.get(_REVISION) != said:
        return [patches(owner, {"metadata": {"annotations": {_REVISION: said}}}, f"{owner} has revision {said}")]
    return []


def _roll(owner: ClusterObject, new: ClusterObject | None, old: list[ClusterObject]) -> list[EnvironmentStep]:
    """Return the next steps of a rolling update, within ``maxSurge`` and ``maxUnavailable``."""
    wanted = integer(owner.spec.get("replicas"))
    surge, missing = _bounds(owner)
    total = sum(map(_size, old)) + (_size(new) if new else 0)
    present = _size(new) if new else 0
    size = wanted if present > wanted else min(wanted, present + max(0, wanted + surge - total))
    if new is None:
        return _made(owner, old, size)
    steps = [*_noted(owner, new, old), *_scaled(owner, new, size)]
    down = total - (wanted - missing) - (_size(new) - _ready(new))
    sizes = {each.uid: _size(each) for each in old}
    oldest_first = sorted(old, key=_revision)
    for each in oldest_first:  # remove unavailable Pods first
        cut = max(0, min(down, sizes[each.uid] - _ready(each)))
        sizes[each.uid] -= cut
        down -= cut
    spare = sum(map(_ready, old)) + _ready(new) - (wanted - missing)
    for each in oldest_first:
        cut = max(0, min(spare, down, sizes[each.uid]))
        sizes[each.uid] -= cut
        spare, down = spare - cut, down - cut
    for each in old:
        steps += _scaled(owner, each, sizes[each.uid]) if sizes[each.uid] != _size(each) else []
    return steps


def _recreate(
    owner: ClusterObject, new: ClusterObject | None, old: list[ClusterObject], view: ClusterView
) -> list[EnvironmentStep]:
    running = [each for each in old if _size(each)]
    if running:
        return [step for each in running for step in _scaled(owner, each, 0)]
    if any(view.controlled_by(each, kinds.POD) for each in old):
        return []
    wanted = integer(owner.spec.get("replicas"))
    if new is None:
        return _made(owner, old, wanted)
    return [*_noted(owner, new, old), *_scaled(owner, new, wanted), *_forgotten(owner, old)]


def _forgotten(owner: ClusterObject, old: list[ClusterObject]) -> list[EnvironmentStep]:
    limit = owner.spec.get("revisionHistoryLimit")
    kept = limit if isinstance(limit, int) else _HISTORY
    empty = [
        each for each in sorted(old, key=_revision) if not _size(each) and not integer(each.status.get("replicas"))
    ]
    return [deletes(each) for each in empty[: max(0, len(empty) - kept)] if not each.deleted]


def _bounds(owner: ClusterObject) -> tuple[int, int]:
    if at(owner.spec, "strategy", "type") == "Recreate":
        return 0, 0
    rolling, wanted = at(owner.spec, "strategy", "rollingUpdate"), integer(owner.spec.get("replicas"))
    surge = _share(at(rolling, "maxSurge"), wanted, up=True)
    missing = min(wanted, _share(at(rolling, "maxUnavailable"), wanted, up=False))
    return surge, missing if surge or missing else 1


def _share(value: object, of: int, *, up: bool) -> int:
    said = text(value)
    if not said.endswith("%"):
        return integer(value)
    hundredths = int(said[:-1]) * of
    return (hundredths + 99) // 100 if up else hundredths // 100


def _status(
    owner: ClusterObject, new: ClusterObject | None, sets: Sequence[ClusterObject], view: ClusterView
) -> list[EnvironmentStep]:
    def total(field: str) -> int:
        return sum(integer(each.status.get(field)) for each in sets)

    wanted = integer(owner.spec.get("replicas"))
    updated = integer(new.status.get("replicas")) if new else 0
    count = total("availableReplicas")
    enough = count >= wanted - _bounds(owner)[1]
    said = {"Available": ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")}
    if not enough:
        said = {"Available": ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")}
    complete = new is not None and updated == total("replicas") == count == wanted
    if complete and new is not None:
        text_of_it = f'ReplicaSet "{new.name}" has successfully progressed.'
        said["Progressing"] = ("True", "NewReplicaSetAvailable", text_of_it)
    elif new is None:
        said["Progressing"] = ("True", "ReplicaSetUpdated", f'Deployment "{owner.name}" is progressing.')
    else:
        said["Progressing"] = ("True", "ReplicaSetUpdated", f'ReplicaSet "{new.name}" is progressing.')
    status = {
        **owner.status,
        "observedGeneration": owner.generation,
        "replicas": total("replicas"),
        "updatedReplicas": updated,
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": count,
        "unavailableReplicas": max(0, sum(map(_size, sets)) - count),
        "conditions": _dated(owner, conditions(owner, view.instant, said), view.instant),
    }
    return reports(owner, status)


def _dated(owner: ClusterObject, found: list[dict[str, object]], instant: str) -> list[dict[str, object]]:
    """Return conditions with ``lastUpdateTime``, which Deployments have in addition to the transition time."""
    before = {text(at(each, "type")): mapping(each) for each in items(owner.status.get("conditions"))}
    for each in found:
        same = before.get(text(each["type"]), {})
        unchanged = all(same.get(field) == each.get(field) for field in ("status", "reason", "message"))
        each["lastUpdateTime"] = same.get("lastUpdateTime") or instant if unchanged else instant
    return found


_REVISION_HASH: Final = "controller-revision-hash"


def stateful_sets(view: ClusterView) -> list[EnvironmentStep]:
    return [step for each in view.of(kinds.STATEFUL_SET) for step in _stateful_sets_of(each, view)]


def _stateful_sets_of(owner: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    pods = {_number(owner, pod): pod for pod in view.controlled_by(owner, kinds.POD)}
    steps = _stateful_sets_status(owner, pods, view)
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
            steps += _stateful_sets_made(owner, number, known, view)
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


def _stateful_sets_made(
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
        _REVISION_HASH: revision,
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
        if pod.labels.get(_REVISION_HASH) != owner.status.get("updateRevision"):
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


def _stateful_sets_status(
    owner: ClusterObject, pods: dict[int, ClusterObject], view: ClusterView
) -> list[EnvironmentStep]:
    revision = f"{owner.name}-{hash_of(owner.spec.get('template'))}"
    current = text(owner.status.get("currentRevision")) or revision
    there = [pod for pod in pods.values() if pod.phase != "" and not _is_ended(pod)]
    ready = [pod for pod in there if is_ready(pod)]
    count, marks = available(there, integer(owner.spec.get("minReadySeconds")), view)

    def of(name: str) -> int:
        return sum(pod.labels.get(_REVISION_HASH) == name and not pod.deleted for pod in there)

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
