"""How strategic merge patch treats the lists of the built-in kinds: a table of merge keys by kind and path.

A rule belongs to a field. It says whether a list is merged (by key, or as a set of plain values), whether the patch may
carry ``$retainKeys``, and what the rules of the fields below are; for a list of objects those are the fields of its
items. Objects always merge. A list without a rule is replaced as a whole: tolerations, command and args are such lists.

Source: the ``patchStrategy`` and ``patchMergeKey`` tags of ``k8s.io/api``, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from deltaloop.api.resource_type import ResourceType


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchRule:
    """The rule of one field.

    Attributes:
        merge: Whether a list is merged with what is there; otherwise it is replaced.
        key: The field that tells items of a merged list apart; empty for a list of plain values.
        retain_keys: Whether clients send ``$retainKeys`` for it; the directive is obeyed wherever it comes.
        fields: Rules of the fields below.
    """

    merge: bool = False
    key: str = ""
    retain_keys: bool = False
    fields: Mapping[str, PatchRule] = field(default_factory=lambda: MappingProxyType({}))

    def below(self, name: str) -> PatchRule:
        """Return the rule of a field below; the plain rule if there is none."""
        return self.fields.get(name, PLAIN)


def _object(**fields: PatchRule) -> PatchRule:
    return PatchRule(fields=fields)


def _list(key: str, *, retain_keys: bool = False, **fields: PatchRule) -> PatchRule:
    return PatchRule(merge=True, key=key, retain_keys=retain_keys, fields=fields)


PLAIN: Final = PatchRule()
_SET: Final = PatchRule(merge=True)
_METADATA: Final = _object(ownerReferences=_list("uid"), finalizers=_SET)
_STATUS: Final = _object(conditions=_list("type"))
_CONTAINERS: Final = _list(
    "name",
    env=_list("name"),
    ports=_list("containerPort"),
    volumeMounts=_list("mountPath"),
    volumeDevices=_list("devicePath"),
)
_POD_SPEC: Final = _object(
    containers=_CONTAINERS,
    initContainers=_CONTAINERS,
    ephemeralContainers=_CONTAINERS,
    volumes=_list("name", retain_keys=True),
    imagePullSecrets=_list("name"),
    hostAliases=_list("ip"),
    topologySpreadConstraints=_list("topologyKey"),
    schedulingGates=_list("name"),
    resourceClaims=_list("name", retain_keys=True),
)
_TEMPLATE: Final = _object(metadata=_METADATA, spec=_POD_SPEC)
_WORKLOAD: Final = _object(template=_TEMPLATE)
_WEBHOOKS: Final = {"webhooks": _list("name")}

_BY_KIND: Final[Mapping[tuple[str, str], Mapping[str, PatchRule]]] = {
    ("", "Pod"): {
        "spec": _POD_SPEC,
        "status": _object(
            conditions=_list("type"),
            podIPs=_list("ip"),
            hostIPs=_list("ip"),
            resourceClaimStatuses=_list("name", retain_keys=True),
        ),
    },
    ("", "PodTemplate"): {"template": _TEMPLATE},
    ("", "ReplicationController"): {"spec": _WORKLOAD},
    ("", "Service"): {"spec": _object(ports=_list("port"))},
    ("", "ServiceAccount"): {"secrets": _list("name")},
    ("", "ComponentStatus"): {"conditions": _list("type")},
    ("", "Node"): {
        "spec": _object(podCIDRs=_SET),
        "status": _object(conditions=_list("type"), addresses=_list("type")),
    },
    ("apps", "Deployment"): {"spec": _object(template=_TEMPLATE, strategy=PatchRule(retain_keys=True))},
    ("apps", "ReplicaSet"): {"spec": _WORKLOAD},
    ("apps", "StatefulSet"): {"spec": _WORKLOAD},
    ("apps", "DaemonSet"): {"spec": _WORKLOAD},
    ("batch", "Job"): {"spec": _WORKLOAD},
    ("batch", "CronJob"): {"spec": _object(jobTemplate=_object(metadata=_METADATA, spec=_WORKLOAD))},
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
}


def rules_of(kind: ResourceType[Any]) -> PatchRule:
    """Return the rules of a built-in kind; every kind has those of the metadata and of the status conditions."""
    return _object(**{"metadata": _METADATA, "status": _STATUS, **_BY_KIND.get((kind.group, kind.kind), {})})
