"""One resource that the server serves: its type and how the server treats it."""

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
    """One column of a Table: a name, a type, and the simple JSON path of its value; "" where it is computed."""

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
    """Where a resource keeps what its ``scale`` subresource shows, as simple JSON paths such as ``.spec.replicas``.

    Attributes:
        spec_replicas: Number of replicas asked for.
        status_replicas: Number of replicas that there are.
        label_selector: Selector of the pods, as text in a custom resource; empty if it has none.
        default: The replicas of an object that says nothing about them; None if it has to.
    """

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    label_selector: str = ""
    default: int | None = 1


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
        priority: Of its group and of its version, as their APIService has it; those of a CRD unless it says otherwise.
        status: Whether ``status`` is a subresource of its own.
        scale_paths: Where the ``scale`` subresource reads and writes; None without one.
        finalize: Whether there is a ``finalize`` subresource (namespaces).
        flags: What it does so or otherwise.
        schema: The type of its objects.
        rules: What is said of its fields beyond types.
        columns: Those of its table; what has no path is computed by the strategy.
        cells: By the names of these, what computes the cells that the strategy does not.
        field_labels: Fields that can be selected by, besides ``metadata.name`` and ``metadata.namespace``.
        label_refusal: The words that refuse another field, with ``{}`` for it; empty means the usual ones.
        parts: Subresources that read and write the object but change one part of it only.
        stored_in: Plural and group of the resource whose objects these are; empty means its own.
        etcd_prefix: What etcd's keys of its objects begin with, where a message shows one.
        codec: How its objects are read and written.
        versions: Schemas of all versions of a custom kind, by API version; None for a built-in kind.
        strategy: What this kind does with its objects beyond what all kinds have in common.
        deprecation: The warning that goes with every answer about this version; empty if it is not deprecated.
    """

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
        """Return the key of an object in the store."""
        return join_key(namespace if self.type.namespaced else "", name)

    def prefix(self, namespace: str) -> str:
        """Return the beginning of the keys of a namespace; empty for all of them."""
        return f"{namespace}/" if self.type.namespaced and namespace else ""

    def subresource(self, name: str) -> Subresource | None:
        """Return a subresource that is more than a part of its object, or None."""
        return next((item for item in self.strategy.subresources if item.name == name), None)

    def asking(self, answers: ExternalAnswers | None) -> ServedResource:
        """Return it for one write, which may ask a webhook to convert objects (``Codec.asking``)."""
        codec = self.codec.asking(answers)
        return self if codec is self.codec else replace(self, codec=codec)

    @property
    def storage(self) -> str:
        """Plural and group under which the store has the objects."""
        return self.stored_in or self.type.group_resource
