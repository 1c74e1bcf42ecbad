"""DefaultStorageClass and DefaultIngressClass: set the newest default class if the object names no class.

Source: Kubernetes plugin/pkg/admission/{storage/storageclass/setdefault,network/defaultingressclass}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, mapping
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.admission.pod_scheduling import CREATE, with_spec


def _default_of(
    plural: str, field: str, *, marks: tuple[str, ...], annotation: str
) -> Callable[[AdmissionAttributes], dict[str, object] | None]:
    def is_default(item: Resource) -> bool:
        return any(item.annotations.get(mark) == "true" for mark in marks)

    def fill(attributes: AdmissionAttributes) -> dict[str, object] | None:
        named = annotation in mapping(at(attributes.after, "metadata", "annotations"))
        if named or at(attributes.after, "spec", field) is not None:
            return None
        defaults = sorted(filter(is_default, attributes.objects.list(plural).items), key=lambda item: item.name)
        # The first name wins if several classes have the same creation timestamp.
        newest = max(defaults, key=lambda item: str(at(item.to_dict(), "metadata", "creationTimestamp")), default=None)
        return with_spec(attributes.after, **{field: newest.name}) if newest is not None else None

    return fill


DEFAULT_STORAGE_CLASS: Final = Plugin(
    operations=CREATE,
    resources=frozenset({kinds.PERSISTENT_VOLUME_CLAIM.group_resource}),
    mutate=_default_of(
        kinds.STORAGE_CLASS.group_resource,
        "storageClassName",
        marks=("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"),
        annotation="volume.beta.kubernetes.io/storage-class",
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
