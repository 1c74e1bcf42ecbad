"""Admission plugins for scheduling: Priority, DefaultTolerationSeconds, PodTopologyLabels, TaintNodesByCondition.

The added fields have no field manager.

Source: Kubernetes plugin/pkg/admission/{priority,defaulttolerationseconds,podtolerationrestriction,nodetaint} and
podtopologylabels (KEP-4742).
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, items, mapping, text
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.kinds.cluster import SYSTEM_CLASSES
from deltaloop.apiserver.core.strategy import Stored

PODS: Final = frozenset({"pods"})
CREATE: Final = frozenset({"CREATE"})
_CREATE_OR_UPDATE: Final = frozenset({"CREATE", "UPDATE"})
_CLASSES: Final = kinds.PRIORITY_CLASS.group_resource
_PREEMPTS: Final = "PreemptLowerPriority"
_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS: Final = 300
_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_TOPOLOGY: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


def with_spec(obj: dict[str, object] | None, **changed: object) -> dict[str, object]:
    fields = mapping(obj)
    return {**fields, "spec": {**mapping(fields.get("spec")), **changed}}


def _set_priority(attributes: AdmissionAttributes) -> dict[str, object] | None:
    spec = mapping(at(attributes.after, "spec"))
    if attributes.operation == "UPDATE":
        old = mapping(at(attributes.before, "spec"))
        names = [name for name in ("priority", "preemptionPolicy") if spec.get(name) is None and name in old]
        return with_spec(attributes.after, **{name: old[name] for name in names}) if names else None
    name, value, policy = _priority(attributes, text(spec.get("priorityClassName")))
    if spec.get("priority") not in (None, value):
        raise attributes.refused(
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission "
            f"controller computed {value} from the given PriorityClass name"
        )
    if spec.get("preemptionPolicy") not in (None, policy):
        raise attributes.refused(
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
    named: dict[str, object] = {"priorityClassName": name} if name else {}
    return with_spec(attributes.after, **named, priority=value, preemptionPolicy=policy)


def _priority(attributes: AdmissionAttributes, name: str) -> tuple[str, int, str]:
    """Return the priority class name (empty for none), the priority and the preemption policy of a pod."""
    if name in SYSTEM_CLASSES:
        return name, SYSTEM_CLASSES[name], _PREEMPTS
    if name:
        found = attributes.objects.get(_CLASSES, name)
        if found is None:
            raise attributes.refused(f"no PriorityClass with name {name} was found")
        fields: dict[str, object] | None = found.to_dict()
    else:
        fields = _default_class(attributes.objects)
    if fields is None:
        return "", 0, _PREEMPTS
    policy = text(fields.get("preemptionPolicy")) or _PREEMPTS
    return text(at(fields, "metadata", "name")), integer(fields.get("value")), policy


def _default_class(objects: Stored) -> dict[str, object] | None:
    """Return the default priority class, the lowest if several exist."""
    classes = (item.to_dict() for item in objects.list(_CLASSES).items)
    defaults = [fields for fields in classes if fields.get("globalDefault") is True]
    return min(defaults, key=lambda fields: integer(fields.get("value")), default=None)


def _check_one_default(attributes: AdmissionAttributes) -> None:
    if at(attributes.after, "globalDefault") is not True:
        return
    default = text(at(_default_class(attributes.objects), "metadata", "name"))
    if default and (attributes.operation == "CREATE" or default != attributes.name):
        raise attributes.refused(f"PriorityClass {default} is already marked as default. Only one default can exist")


def _tolerate(attributes: AdmissionAttributes) -> dict[str, object] | None:
    tolerations = items(at(attributes.after, "spec", "tolerations"))
    added: list[dict[str, object]] = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
        for key in _TOLERATED
        if not any(_covers(toleration, key) for toleration in tolerations)
    ]
    return with_spec(attributes.after, tolerations=[*tolerations, *added]) if added else None


def _covers(toleration: object, key: str) -> bool:
    return at(toleration, "key") in (key, None, "") and at(toleration, "effect") in ("NoExecute", None, "")


def _taint(attributes: AdmissionAttributes) -> dict[str, object] | None:
    taints = items(at(attributes.after, "spec", "taints"))
    if any(all(at(taint, name) == value for name, value in _NOT_READY.items()) for taint in taints):
        return None
    return with_spec(attributes.after, taints=[*taints, dict(_NOT_READY)])


def _label(attributes: AdmissionAttributes) -> dict[str, object] | None:
    """Copy zone and region of the node to a pod or to the binding that assigns the node."""
    fields = mapping(attributes.after)
    node = text(at(fields, "spec", "nodeName"))
    if attributes.subresource:
        node = text(at(fields, "target", "name")) if at(fields, "target", "kind") == "Node" else ""
    found = attributes.objects.get(kinds.NODE.group_resource, node) if node else None
    labels = mapping(at(found.to_dict() if found is not None else None, "metadata", "labels"))
    copied: dict[str, object] = {name: labels[name] for name in _TOPOLOGY if name in labels}
    if not copied:
        return None
    metadata = mapping(fields.get("metadata"))
    return {**fields, "metadata": {**metadata, "labels": {**mapping(metadata.get("labels")), **copied}}}


PRIORITY: Final = (
    Plugin(operations=_CREATE_OR_UPDATE, resources=PODS, mutate=_set_priority),
    Plugin(operations=_CREATE_OR_UPDATE, resources=frozenset({_CLASSES}), validate=_check_one_default),
)
DEFAULT_TOLERATION_SECONDS: Final = Plugin(operations=_CREATE_OR_UPDATE, resources=PODS, mutate=_tolerate)
TAINT_NODES_BY_CONDITION: Final = Plugin(operations=CREATE, resources=frozenset({"nodes"}), mutate=_taint)
POD_TOPOLOGY_LABELS: Final = Plugin(operations=CREATE, resources=frozenset({"pods", "pods/binding"}), mutate=_label)
