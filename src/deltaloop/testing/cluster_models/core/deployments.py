"""Deployment controller: a ReplicaSet for each template, and a rollout to the newest template.

Source: pkg/controller/deployment: rolling.go, recreate.go, progress.go, util/deployment_util.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, items, mapping, string_map, text
from deltaloop.testing.cluster_models.core.agenda import EnvironmentStep
from deltaloop.testing.cluster_models.core.cluster_view import (
    ClusterObject,
    ClusterView,
    conditions,
    creates,
    deletes,
    hash_of,
    patches,
    reference_of,
    reports,
)

_HASH: Final = "pod-template-hash"
_REVISION: Final = "deployment.kubernetes.io/revision"
_HISTORY: Final = 10


def deployments(view: ClusterView) -> list[EnvironmentStep]:
    return [step for each in view.of(kinds.DEPLOYMENT) for step in _of(each, view)]


def _of(owner: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
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
        return [
            patches(
                new, {"metadata": {"annotations": {_REVISION: str(latest + 1)}}}, f"{new} becomes the newest ReplicaSet"
            )
        ]
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
