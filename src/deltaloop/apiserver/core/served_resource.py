"""Served resource: type, storage, codec and behavior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from deltaloop.api.keys import join_key
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.codec import Codec
from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.strategy import PLAIN, PLAIN_FLAGS, Flags, Strategy, Subresource, TimedCell
from deltaloop.schemas.checking import NO_RULES, ObjectRules
from deltaloop.schemas.object_meta import UNTYPED
from deltaloop.schemas.types import Schema

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
SUBRESOURCE_VERBS: Final = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """Column of a Table. The JSON path is empty if the value is computed."""

    name: str
    type: str
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


NAME_COLUMN: Final = TableColumn(
    "Name", "string", ".metadata.name", "Name of the object, unique in its namespace.", "name"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePaths:
    """Simple JSON paths for the ``scale`` subresource, for example ``.spec.replicas``."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    label_selector: str = ""
    default: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedResource:
    """Served resource, either built in or a version of a CRD."""

    type: ResourceType[Resource]
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    priority: tuple[int, int] = (1000, 100)
    status: bool = False
    scale_paths: ScalePaths | None = None
    finalize: bool = False
    flags: Flags = PLAIN_FLAGS
    schema: Schema = UNTYPED
    rules: ObjectRules = field(default=NO_RULES, repr=False, compare=False)
    columns: tuple[TableColumn, ...] = ()
    cells: Mapping[str, TimedCell] = field(default_factory=dict[str, TimedCell], repr=False, compare=False)
    field_labels: tuple[str, ...] = ()
    label_refusal: str = ""
    parts: tuple[str, ...] = ()
    stored_in: str = ""
    etcd_prefix: str = ""
    codec: Codec = field(repr=False, compare=False)
    deprecation: str = ""
    versions: Mapping[str, Schema] | None = field(default=None, repr=False, compare=False)
    strategy: Strategy = field(default=PLAIN, repr=False, compare=False)

    def key(self, namespace: str, name: str) -> str:
        return join_key(namespace if self.type.namespaced else "", name)

    def prefix(self, namespace: str) -> str:
        return f"{namespace}/" if self.type.namespaced and namespace else ""

    def subresource(self, name: str) -> Subresource | None:
        for item in self.strategy.subresources:
            if item.name == name:
                return item
        return None

    def asking(self, answers: ExternalAnswers | None) -> ServedResource:
        codec = self.codec.asking(answers)
        return self if codec is self.codec else replace(self, codec=codec)

    @property
    def storage(self) -> str:
        return self.stored_in or self.type.group_resource
