"""One resource that the server serves: its type and how the server treats it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One column of a Table: a name, a type, and the simple JSON path of its value."""

    name: str
    type: str
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedResource:
    """A resource as served: built in, or made from a CRD's version.

    Attributes:
        type: Group, version, kind, plural and scope.
        singular: Singular name, as in ``kubectl get pod``.
        list_kind: Kind of its lists.
        short_names: Such as ``deploy``.
        categories: Such as ``all``.
        verbs: What can be done with it.
        status: Whether ``status`` is a subresource of its own.
        scale: Whether there is a ``scale`` subresource.
        custom: Whether it was made from a CRD: items of lists carry their kind, strategic merge patch is refused, an
            update needs a resource version.
        generation: Whether the server counts ``metadata.generation``.
        schema: The CRD version's OpenAPI v3 schema as JSON bytes, if any.
        columns: Printer columns of a custom resource; built-in kinds have theirs in the table module.
        field_labels: Fields that can be selected by, besides ``metadata.name`` and ``metadata.namespace``.
    """

    type: ResourceType[Resource]
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    status: bool = False
    scale: bool = False
    custom: bool = False
    generation: bool = False
    schema: bytes = b""
    columns: tuple[PrinterColumn, ...] = ()
    field_labels: tuple[str, ...] = ()
