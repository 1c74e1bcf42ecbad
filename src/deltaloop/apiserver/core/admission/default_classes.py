"""Plugins for the classes of storage, ingresses and runtimes.

Source: Kubernetes plugin/pkg/admission/{storage/storageclass/setdefault,network/defaultingressclass}; Kubernetes
plugin/pkg/admission/storage; pkg/volume/util/storageclass.go; Kubernetes
plugin/pkg/admission/{runtimeclass,podresize}; pkg/util/tolerations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.admission.pod_scheduling import CREATE, PODS, with_spec
from deltaloop.apiserver.core.kinds.claim_spec import CLASS_ANNOTATION, storage_class
from deltaloop.apiserver.core.kinds.resource_amounts import amounts, pod_amounts
from deltaloop.apiserver.core.kinds.storage import DEFAULT_CLASS_MARKS, newest_default
from deltaloop.schemas.quantity import amount


def _default_of(
    plural: str, field: str, *, marks: tuple[str, ...], annotation: str
) -> Callable[[AdmissionAttributes], dict[str, object] | None]:
    def fill(attributes: AdmissionAttributes) -> dict[str, object] | None:
        named = annotation in mapping(at(attributes.after, "metadata", "annotations"))
        if named or at(attributes.after, "spec", field) is not None:
            return None
        newest = newest_default([item.to_dict() for item in attributes.objects.list(plural).items], marks)
        return with_spec(attributes.after, **{field: newest}) if newest else None

    return fill


DEFAULT_STORAGE_CLASS: Final = Plugin(
    operations=CREATE,
    resources=frozenset({kinds.PERSISTENT_VOLUME_CLAIM.group_resource}),
    mutate=_default_of(
        kinds.STORAGE_CLASS.group_resource,
        "storageClassName",
        marks=DEFAULT_CLASS_MARKS,
        annotation=CLASS_ANNOTATION,
    ),
)
DEFAULT_INGRESS_CLASS: Final = Plugin(
    operations=CREATE,
    resources=frozenset({kinds.INGRESS.group_resource}),
    mutate=_default_of(
        "ingressclasses.networking.k8s.io",
        "ingressClassName",
        marks=("ingressclass.kubernetes.io/is-default-class",),
        annotation="kubernetes.io/ingress.class",
    ),
)


_CLAIMS: Final = frozenset({kinds.PERSISTENT_VOLUME_CLAIM.group_resource})
_PROTECTED: Final = _CLAIMS | {kinds.PERSISTENT_VOLUME.group_resource, "volumeattributesclasses.storage.k8s.io"}


def _protect(attributes: AdmissionAttributes) -> dict[str, object] | None:
    """Add the finalizer that protects an object in use."""
    fields, protection = mapping(attributes.after), attributes.served.strategy.protection
    metadata = mapping(fields.get("metadata"))
    present = texts(metadata.get("finalizers"))
    if protection is None or protection.finalizer in present:
        return None
    return {**fields, "metadata": {**metadata, "finalizers": [*present, protection.finalizer]}}


def _check_growth(attributes: AdmissionAttributes) -> None:
    before, after = attributes.before, attributes.after
    old, new = (amount(at(claim, "spec", "resources", "requests", "storage") or 0) for claim in (before, after))
    if new <= old:
        return
    if at(before, "status", "phase") != "Bound":
        raise attributes.refused("Only bound persistent volume claims can be expanded")
    was, name = (storage_class(mapping(claim)) for claim in (before, after))
    found = attributes.objects.get(kinds.STORAGE_CLASS.group_resource, name) if name and name == was else None
    if found is None or at(found.to_dict(), "allowVolumeExpansion") is not True:
        raise attributes.refused(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
            "resize"
        )


STORAGE_OBJECT_IN_USE_PROTECTION: Final = Plugin(
    operations=frozenset({"CREATE"}), resources=_PROTECTED, mutate=_protect
)
PERSISTENT_VOLUME_CLAIM_RESIZE: Final = Plugin(
    operations=frozenset({"UPDATE"}), resources=_CLAIMS, validate=_check_growth
)


_CLASSES: Final = "runtimeclasses.node.k8s.io"
_MISMATCH: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


def _runtime_class_class_of(attributes: AdmissionAttributes) -> dict[str, object]:
    """Return the RuntimeClass of a pod, or an empty object if the pod names none."""
    name = at(attributes.after, "spec", "runtimeClassName")
    if name is None:
        return {}
    found = attributes.objects.get(_CLASSES, text(name))
    if found is None:
        raise attributes.refused(f'pod rejected: RuntimeClass "{text(name)}" not found')
    return found.to_dict()


def _differ(first: object, second: object) -> bool:
    one, other = amounts(first), amounts(second)
    return one.keys() != other.keys() or any(amount(one[name]) != amount(other[name]) for name in one)


def _fill(attributes: AdmissionAttributes) -> dict[str, object] | None:
    runtime, spec = _runtime_class_class_of(attributes), mapping(at(attributes.after, "spec"))
    changed: dict[str, object] = {}
    if "overhead" in runtime:
        fixed = at(runtime, "overhead", "podFixed")
        if spec.get("overhead") and _differ(fixed, spec["overhead"]):
            raise attributes.refused(_MISMATCH)
        changed["overhead"] = mapping(fixed)
    scheduling = mapping(runtime.get("scheduling"))
    wanted, selector = mapping(scheduling.get("nodeSelector")), mapping(spec.get("nodeSelector"))
    for key in sorted(wanted.keys() & selector):
        if wanted[key] != selector[key]:
            raise attributes.refused(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted[key]}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
    if wanted:
        changed["nodeSelector"] = {**selector, **wanted}
    tolerations = items(spec.get("tolerations"))
    added = [each for each in items(scheduling.get("tolerations")) if each not in tolerations]
    if added:
        changed["tolerations"] = [*tolerations, *added]
    return with_spec(attributes.after, **changed) if changed else None


def _check(attributes: AdmissionAttributes) -> None:
    runtime, overhead = _runtime_class_class_of(attributes), at(attributes.after, "spec", "overhead")
    if "overhead" in runtime:
        if _differ(at(runtime, "overhead", "podFixed"), overhead):
            raise attributes.refused(_MISMATCH)
    elif overhead is not None:
        raise attributes.refused("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")


def _check_resize(attributes: AdmissionAttributes) -> None:
    """Reject a resize if the node does not support it or has insufficient capacity."""
    spec = mapping(at(attributes.after, "spec"))
    node = text(spec.get("nodeName"))
    counts = [at(each, "metadata", "generation") for each in (attributes.before, attributes.after)]
    if not node or counts[0] == counts[1]:
        return
    found = attributes.objects.get(kinds.NODE.group_resource, node)
    if found is None:
        raise attributes.refused(f'node "{node}" not found')
    system = found.labels.get("kubernetes.io/os", "linux")
    if system != "linux":
        why = f'pod resize is only supported on linux nodes, node "{node}" is "{system}"'
        raise attributes.refused(why, cause="UnsupportedPlatform")
    room, requests = at(found.to_dict(), "status", "allocatable"), pod_amounts(spec, "requests", overhead=True)
    short: list[str] = []
    for name, unit in (("cpu", 1000), ("memory", 1)):
        asked, there = amount(requests.get(name, 0)), amount(mapping(room).get(name, 0))
        if asked > there:
            short.append(f"{name}, requested: {-int(-asked * unit // 1)}, allocatable: {-int(-there * unit // 1)}")
    if short:
        why = f"node didn't have enough allocatable resources: {'; '.join(short)}"
        raise attributes.refused(why, cause="NodeCapacity")


RUNTIME_CLASS: Final = Plugin(operations=CREATE, resources=PODS, mutate=_fill, validate=_check)
POD_RESIZE_VALIDATOR: Final = Plugin(
    operations=frozenset({"UPDATE"}), resources=frozenset({"pods/resize"}), validate=_check_resize
)
