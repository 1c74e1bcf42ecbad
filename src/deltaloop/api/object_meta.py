"""The metadata of an object of a class: what a program reads, and what it may set."""

from __future__ import annotations

import msgspec

from deltaloop.api.keys import join_key
from deltaloop.api.pydantic_models import InModels
from deltaloop.api.resource import OwnerReference


class ObjectMeta(InModels, msgspec.Struct, omit_defaults=True, rename="camel"):
    """The metadata of an object whose kind has a class: its field ``metadata``.

    An object as it was read has all of them; of a new one ``name`` or ``generate_name`` is set, and labels,
    annotations, owners and finalizers where it is to have some. What was not set is not sent.

    Attributes:
        name: The object's name, unique among those of its kind in its namespace.
        namespace: Where it lives; empty for kinds without namespaces, and in a new object for the client's own.
        labels: What it is selected by.
        annotations: Texts of any length for programs and people.
        finalizers: Who has to do something before a deleted object goes.
        owner_references: With which objects it goes; ``set_controller_reference`` adds one.
        generate_name: In a new object without a name, the beginning of the one that the server makes.
        uid: Tells it from all objects that had its name before.
        resource_version: Of the state that was read; an ``update`` of an older one is a conflict.
        generation: Counts the changes of what is wanted, the ``spec``.
        creation_timestamp: When it was created, as the server writes it.
        deletion_timestamp: When it was, or is to be, deleted; None while nobody has asked for it.
        deletion_grace_period_seconds: Seconds from that request to the end; None if nobody has asked.

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
        """``namespace/name``, or the name alone: as the request of a reconcile and a cache have it."""
        return join_key(self.namespace, self.name)
