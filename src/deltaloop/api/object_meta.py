"""Metadata of typed objects."""

from __future__ import annotations

import msgspec

from deltaloop.api.keys import join_key
from deltaloop.api.pydantic_models import InModels
from deltaloop.api.resource import OwnerReference


class ObjectMeta(InModels, msgspec.Struct, omit_defaults=True, rename="camel"):
    """Metadata of a typed object, in its field ``metadata``.

    Objects from the server have all fields. For a new object, set ``name`` or ``generate_name``, and optionally labels,
    annotations, owner references and finalizers. Fields that are not set are not sent.

    Attributes:
        name: Name, unique for a kind and namespace.
        namespace: Namespace. Empty for cluster-scoped kinds. In a new object, empty means the client's namespace.
        labels: Labels for selection.
        annotations: Annotations of any length.
        finalizers: Finalizers, which must be removed before a deleted object disappears.
        owner_references: Owners. ``set_controller_reference`` adds one.
        generate_name: Prefix of a generated name, for a new object without a name.
        uid: UID, which distinguishes the object from earlier objects with the same name.
        resource_version: Version of the state that was read. An ``update`` of an older version is a conflict.
        generation: Number of changes of the desired state (``spec``).
        creation_timestamp: Creation time, as the server writes it.
        deletion_timestamp: Time of the deletion, or None if the deletion was not requested.
        deletion_grace_period_seconds: Grace period in seconds, or None if the deletion was not requested.

    Source: apimachinery pkg/apis/meta/v1 ``ObjectMeta``; ``managedFields`` are left out.
    """

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []
    generate_name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None

    @property
    def key(self) -> str:
        """``namespace/name`` or ``name``, the key in requests and caches."""
        return join_key(self.namespace, self.name)
