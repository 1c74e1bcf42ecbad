"""The built-in kinds as the real server serves them: short names, categories, verbs, subresources, generation.

They come from the tables (``builtin_tables``). Reviews, which are answered and never stored, are no resources here.

Source: Kubernetes 1.36, ``api/discovery`` for names and verbs; the ``strategy.go`` of each kind in ``pkg/registry`` for
generations, for updates without a resource version, and for what writes to ``/status`` change.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.builtin.conversion import CONVERSIONS
from deltaloop.apiserver.core.builtin.tables import KindEntry, builtin_tables
from deltaloop.apiserver.core.kinds.all_kinds import STRATEGIES
from deltaloop.apiserver.core.served_resource import CLIENTS_METADATA, ScalePaths, ServedResource
from deltaloop.apiserver.core.strategy import PLAIN

_REVIEWS: Final = ("authentication.k8s.io", "authorization.k8s.io")
# Two groups, one storage.
_STORED_IN: Final = {("events.k8s.io", "events"): "events"}
_PARTS: Final = ("approval", "ephemeralcontainers", "resize")
_KNOWN: Final = {(known.group, known.version, known.kind): known for known in kinds.BUILT_IN}

# Published schemas do not say this; it is AllowCreateOnUpdate of the strategies in Kubernetes pkg/registry.
_CREATED_ON_UPDATE: Final = frozenset(
    {
        "endpoints.",
        "events.",
        "events.events.k8s.io",
        "limitranges.",
        "services.",
        "leases.coordination.k8s.io",
        "runtimeclasses.node.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
    }
)

# What PrepareForUpdate of a status strategy does not take back from the object as it was; most kinds take nothing back.
_STATUS_METADATA: Final = {
    "deployments.apps": CLIENTS_METADATA - {"labels"},
    "pods.": CLIENTS_METADATA - {"ownerReferences"},
    **dict.fromkeys(
        (
            "apiservices.apiregistration.k8s.io",
            "flowschemas.flowcontrol.apiserver.k8s.io",
            "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
            "resourceclaims.resource.k8s.io",
            "servicecidrs.networking.k8s.io",
            "validatingadmissionpolicies.admissionregistration.k8s.io",
            "volumeattachments.storage.k8s.io",
        ),
        frozenset[str](),
    ),
}


_DEPRECATIONS: Final = {
    ("v1", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
    ("v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


def _type(entry: KindEntry) -> ResourceType[Resource]:
    known = _KNOWN.get((entry.group, entry.version, entry.kind))
    if known is not None:
        return known
    return ResourceType[Resource](entry.group, entry.version, entry.kind, entry.plural, entry.namespaced)


def _served(entry: KindEntry) -> ServedResource:
    scale = "scale" in entry.subresources
    return ServedResource(
        type=_type(entry),
        singular=entry.kind.lower(),
        list_kind=f"{entry.kind}List",
        short_names=entry.short_names,
        categories=entry.categories,
        verbs=entry.verbs,
        status="status" in entry.subresources,
        status_metadata=_STATUS_METADATA.get(f"{entry.plural}.{entry.group}", CLIENTS_METADATA),
        scale=scale,
        scale_paths=ScalePaths(label_selector=entry.selector) if scale else None,
        finalize="finalize" in entry.subresources,
        unconditional_update=entry.unconditional,
        create_on_update=f"{entry.plural}.{entry.group}" in _CREATED_ON_UPDATE,
        generation=entry.generation,
        field_labels=entry.field_labels,
        label_refusal=entry.label_refusal,
        parts=tuple(name for name in entry.subresources if name in _PARTS),
        stored_in=_STORED_IN.get((entry.group, entry.plural), ""),
        strategy=STRATEGIES.get(entry.group_resource, PLAIN),
        deprecation=_DEPRECATIONS.get((entry.api_version, entry.kind), ""),
        converted=(entry.api_version, entry.kind) in CONVERSIONS,
    )


BUILT_IN_RESOURCES: Final[tuple[ServedResource, ...]] = tuple(
    _served(entry) for entry in builtin_tables().kinds if entry.group not in _REVIEWS
)
