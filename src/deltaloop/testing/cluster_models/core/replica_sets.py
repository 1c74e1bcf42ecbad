"""ReplicaSet controller: create and delete Pods, and report how many are ready."""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, mapping, string_map, text
from deltaloop.testing.cluster_models.core.agenda import EnvironmentStep
from deltaloop.testing.cluster_models.core.cluster_view import (
    ClusterObject,
    ClusterView,
    creates,
    deletes,
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
    """Return the metadata that a Pod takes from its template."""
    metadata = mapping(at(template, "metadata"))
    return {name: metadata[name] for name in ("labels", "annotations", "finalizers") if metadata.get(name)}


def pod_of(owner: ClusterObject) -> dict[str, object]:
    """Return a Pod of an owner's template, with a generated name."""
    template = mapping(owner.spec.get("template"))
    metadata = metadata_of(template)
    metadata |= {"generateName": f"{owner.name}-", "ownerReferences": [reference_of(owner)]}
    return {"metadata": metadata, "spec": mapping(template.get("spec"))}
