"""Strategy of a kind: its behavior beyond the common behavior of all kinds, as one record.

No other code distinguishes kinds. The functions are pure, or change the given object in place. Steps of a write:

    default          complete an object as sent
    keep             copy server-side values into an update that omits them
    prepare          set server-side values that count as written by the author
    part             apply the write of a subresource such as ``resize``
    validate         return errors: always, for new objects, for changes, and for the status
    warn             return warnings for the author
    finish           add server-side values without a field manager; it can read the store
    store            run side effects when the object is stored, marked for deletion or removed

Source: apiserver pkg/registry/rest ``RESTCreateStrategy``, ``RESTUpdateStrategy``, ``TableConvertor``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.times import format_time, from_epoch
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.schemas.checking import Check
from deltaloop.schemas.field_errors import SchemaError

_Fill: TypeAlias = Callable[[dict[str, object]], object]
Part: TypeAlias = Callable[[dict[str, object], dict[str, object]], dict[str, object]]
Cell: TypeAlias = Callable[[Mapping[str, object]], object]
Option: TypeAlias = Literal["text", "texts", "flag", "numbers"]
TimedCell: TypeAlias = Callable[[Mapping[str, object], float], object]
"""Function that computes a table cell for a time in seconds since 1970."""


class StoredItems(Protocol):
    @property
    def items(self) -> Sequence[Resource]: ...


class Stored(Protocol):
    def get(self, resource: str, key: str) -> Resource | None: ...

    def list(self, resource: str, *, prefix: str = "") -> StoredItems: ...

    def count(self, resource: str) -> int: ...


class Moment(NamedTuple):
    """Time in seconds since 1970, UID and random number in [0, 1) for one write."""

    now: float
    uid: str = ""
    random: float = 0.0

    @property
    def time(self) -> str:
        return _formatted(int(self.now))


@lru_cache(maxsize=16)
def _formatted(now: int) -> str:
    return format_time(from_epoch(now))


class Definitions(Protocol):
    def check_open(self, kind: ResourceType[Resource], name: str) -> None:
        """Reject a new object of a CRD that is being deleted."""
        ...

    def begin_deletion(self, name: str, *, now: float) -> None:
        """Report that the deletion of the objects of a CRD has begun."""
        ...

    def applied(self, crd: dict[str, object], moment: Moment) -> dict[str, object]:
        """Serve a CRD, and return it as it must be stored."""
        ...

    def finish(self, name: str, *, now: float) -> None:
        """Release a CRD that is being deleted and has no objects left."""
        ...

    def stop_serving(self, name: str, *, now: float) -> None: ...


class Writes(Protocol):
    """Writes of other objects and changes of the served resources (``ServerState``)."""

    @property
    def objects(self) -> Stored: ...

    @property
    def crds(self) -> Definitions: ...

    def fields_of(self, kind: ResourceType[Resource], namespace: str, name: str) -> dict[str, object]: ...

    def put(self, kind: ResourceType[Resource], fields: dict[str, object]) -> None:
        """Store an existing object without further processing."""
        ...

    def update_status(self, kind: ResourceType[Resource], fields: dict[str, object], moment: Moment) -> None:
        """Store an object with a changed status, like a write to ``/status``."""
        ...

    def delete_as(
        self,
        kind: ResourceType[Resource],
        namespace: str,
        name: str,
        options: DeleteOptions,
        *,
        now: float,
        dry_run: bool,
    ) -> object: ...

    def create_beside(self, kind: ResourceType[Resource], fields: dict[str, object], *, uid: str, now: float) -> None:
        """Create a cluster-scoped object that belongs to another object."""
        ...

    def remove_beside(self, kind: ResourceType[Resource], name: str) -> None: ...

    def delete_few(self, resource: str, *, now: float) -> None:
        """Delete the objects of a CRD's resource, named by plural and group, if they are few."""
        ...


CLIENTS_METADATA: Final = frozenset({"annotations", "finalizers", "generateName", "labels", "ownerReferences"})


def with_clients_metadata(
    old: dict[str, object], sent: dict[str, object], taken: frozenset[str] = CLIENTS_METADATA
) -> dict[str, object]:
    """Return metadata with the fields ``taken`` from what was sent, and the others unchanged."""
    kept = {name: value for name, value in old.items() if name not in taken}
    return kept | {name: value for name, value in sent.items() if name in taken}


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """Behavior flags of a kind. The tables contain those of the built-in kinds."""

    generation: bool = False
    counted: str = ""
    unconditional_update: bool = True
    create_on_update: bool = False
    returned_when_deleted: bool = False
    name_form: Literal["subdomain", "label", "path"] = "subdomain"
    base_rechecked: bool = True
    any_finalizer: bool = False
    status_metadata: frozenset[str] = CLIENTS_METADATA
    status_restores: Literal["", "deletion", "metadata"] = ""
    self_described: bool = False
    protobuf: bool = True
    strategic_merge: bool = True
    own_finalizers: bool = True


PLAIN_FLAGS: Final = Flags()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    namespace: str
    name: str
    fields: dict[str, object]
    query: Mapping[str, str]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Subresource:
    """Subresource with its own kind."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]
    answer: Callable[[Asked, Writes, Moment], None] | None = None
    takes_object: bool = True
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])
    done: int = 201

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else "v1"


@final
@dataclass(frozen=True, slots=True)
class Conversion:
    """Conversions between a served and the stored version, which do not change their arguments."""

    from_stored: Callable[[dict[str, object]], dict[str, object]]
    to_stored: Callable[[dict[str, object]], dict[str, object]]


@final
@dataclass(frozen=True, slots=True)
class Protection:
    """Finalizer that protects objects in use; new objects get it, and a controller removes it."""

    finalizer: str
    in_use: Callable[[Resource, Stored], bool]


def _nothing(*_: object) -> None:
    return


def _none(*_: object) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """Strategy of one kind. The defaults are the common behavior.

    Attributes of functions describe their effect or result.

    Attributes:
        defaults: Functions for defaults that depend on other fields, in place, by type name. Simple defaults are
            already set, but not yet those of nested structs.
        prepare_new: Set values of a new object that count as written by its author.
        prepare_update: Restore fields of the new object that a full update cannot change.
        parts: Functions that merge a sent object into the current object, by subresource.
        checks: Validation functions for single values, by their names in the types' rules.
        validate: Errors of a new or fully updated object beyond the types' rules.
        validate_update: Forbidden changes between the old and the new object.
        validate_status: Errors of the new object after a status update.
        warn_wanted: Warnings about a new object or a changed spec.
        posts_to: Kind and subresource that handle a POST to the collection, for the object of the same name.
        row_conditions: Conditions of a table row.
        reported: Objects that the server reports without storing them.
        row_order: Sort key for table rows. None for the order of the list.
        default_of: Name of the default object in a list, or an empty string.
        finish_new: Add server-side values to a new object and return errors for unavailable values.
        check_new: Reject a new object with a name before validation.
        store: Run the side effects of storing an object and return the object to store. The old object
            is None for a create.
        mark: Change an object that is marked for deletion, given the object before.
        is_held: Whether more than ``metadata.finalizers`` prevents the removal.
        grace: Grace period in seconds, given the requested grace period.
        finalizers: Finalizers that are added when an object is marked for deletion.
        dependents: Handling of dependents by a delete that specifies no policy; ``ignored`` disables policies.
        counts_empty: Field in which an empty list or map counts as a change at each update, although it is not stored.
        delete_warning: Warning for a client whose delete specifies no policy.
        marked_when_removed: Whether an object is marked for deletion even if it is removed immediately.
        status_when_new: Whether a create can set the status.
        reset_fields: Fields that a write to a subresource resets, so that they have no owner, by subresource in the
            format of ``fieldsV1``. In addition to those of all kinds.
        why_unserved: Why the resource of a definition is not served, or an empty string.
        timed_cells: Compute the cells that depend on the time or on each other.
    """

    defaults: Mapping[str, _Fill] = field(default_factory=dict[str, _Fill])
    default: Callable[[dict[str, object]], None] = _nothing
    conversion: Conversion | None = None
    keep: Callable[[dict[str, object], dict[str, object]], None] = _nothing
    prepare_new: Callable[[dict[str, object]], None] = _nothing
    prepare_update: Callable[[dict[str, object], dict[str, object]], None] = _nothing
    prepare_status: Callable[[dict[str, object], dict[str, object]], None] = _nothing
    parts: Mapping[str, Part] = field(default_factory=dict[str, Part])
    checks: Mapping[str, Check] = field(default_factory=dict[str, Check])
    validate: Callable[[dict[str, object]], Iterable[SchemaError]] = _none
    validate_new: Callable[[dict[str, object]], Iterable[SchemaError]] = _none
    validate_update: Callable[[dict[str, object], dict[str, object]], Iterable[SchemaError]] = _none
    validate_status: Callable[[dict[str, object], dict[str, object]], Iterable[SchemaError]] = _none
    warn: Callable[[dict[str, object]], Iterable[str]] = _none
    warn_new: Callable[[dict[str, object]], Iterable[str]] = _none
    warn_wanted: Callable[[dict[str, object]], Iterable[str]] = _none
    warn_update: Callable[[dict[str, object], dict[str, object]], Iterable[str]] = _none
    warn_status: Callable[[dict[str, object]], Iterable[str]] = _none
    finish_new: Callable[[dict[str, object], Stored, Moment], Iterable[SchemaError]] = _none
    finish_update: Callable[[dict[str, object], dict[str, object], Stored, Moment], Iterable[SchemaError]] = _none
    subresources: tuple[Subresource, ...] = ()
    posts_to: tuple[ResourceType[Resource], str] | None = None
    row_conditions: Callable[[Mapping[str, object]], Sequence[Mapping[str, str]]] = _none
    reported: tuple[Resource, ...] = ()
    row_order: Callable[[Mapping[str, Any]], Any] | None = None
    default_of: Callable[[Sequence[Mapping[str, object]]], str] = lambda _listed: ""
    check_new: Callable[[ResourceType[Resource], str, Writes], None] = _nothing
    store: Callable[[dict[str, object] | None, dict[str, object], Writes, Moment], dict[str, object]] = (
        lambda _before, after, _writes, _moment: after
    )
    mark: Callable[[dict[str, object], dict[str, object]], None] = _nothing
    marked: Callable[[Resource, Writes, float], None] = _nothing
    removed: Callable[[str, Resource, Writes, float], None] = _nothing
    is_held: Callable[[dict[str, object]], bool] = lambda _obj: False
    grace: Callable[[dict[str, object], int | None], int] = lambda _obj, _asked: 0
    finalizers: tuple[str, ...] = ()
    dependents: Literal["deleted", "orphaned", "ignored"] = "deleted"
    delete_warning: str = ""
    counts_empty: str = ""
    protection: Protection | None = None
    marked_when_removed: bool = False
    status_when_new: bool = False
    reset_fields: Mapping[str, dict[str, object]] = field(default_factory=dict[str, dict[str, object]])
    why_unserved: Callable[[dict[str, object]], str] = lambda _obj: ""
    cells: Mapping[str, Cell] = field(default_factory=dict[str, Cell])
    timed_cells: Callable[[Mapping[str, object], float], Mapping[str, object]] = lambda _obj, _now: {}


PLAIN: Final = Strategy()
