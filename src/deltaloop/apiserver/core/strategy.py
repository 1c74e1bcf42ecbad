"""What a kind does with its objects beyond what all kinds have in common, as one record.

``kinds`` has a module for each built-in kind with anything of its own, which exports one; custom resources have
another. What the server serves carries its strategy, so that nothing else asks which kind it is. Every function is
plain: it changes the object that it is given, or returns what it finds. The steps of a write, in their order:

    default          an object as sent gets what its author left out
    keep             an update gets what the server has added before, where it does not say it
    prepare          what the server sets in a new or a changed object that counts as written by its author
    part             what a subresource of its own writes, such as ``resize``
    validate         what is wrong with it: always, when it is new, when it changes, in its status
    warn             what its author is to be warned about
    finish           what the server adds last, which has no field manager; it may ask the store
    store            what else is done when it is stored; and when it is marked to be deleted, or removed

Source: apiserver pkg/registry/rest ``RESTCreateStrategy``, ``RESTUpdateStrategy``, ``TableConvertor``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias, final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.schemas.checking import Check
from deltaloop.schemas.field_errors import SchemaError

_Fill: TypeAlias = Callable[[dict[str, object]], object]
Part: TypeAlias = Callable[[dict[str, object], dict[str, object]], dict[str, object]]
Cell: TypeAlias = Callable[[Mapping[str, object]], object]
"""What computes a cell of an object's row."""
Option: TypeAlias = Literal["text", "texts", "flag", "numbers"]
"""The type of an option of a stream."""
TimedCell: TypeAlias = Callable[[Mapping[str, object], float], object]
"""The same, at a time in seconds since 1970."""


class StoredItems(Protocol):
    """Some objects."""

    @property
    def items(self) -> Sequence[Resource]:
        """The objects."""
        ...


class Stored(Protocol):
    """What a strategy may read of the store."""

    def get(self, resource: str, key: str) -> Resource | None:
        """Return an object, or None."""
        ...

    def list(self, resource: str, *, prefix: str = "") -> StoredItems:
        """Return a resource's objects, or those of a namespace."""
        ...

    def count(self, resource: str) -> int:
        """Return how many objects a resource has; that takes less than to list none."""
        ...


class Given(Protocol):
    """What a write takes from outside (``WriteContext``)."""

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        ...

    @property
    def time(self) -> str:
        """The same, as objects have it."""
        ...

    @property
    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    @property
    def uid(self) -> str:
        """For the object, if it is new."""
        ...


class Definitions(Protocol):
    """The custom resource definitions (``CrdLifecycle``)."""

    def check_open(self, name: str) -> None:
        """Refuse a new object of a definition that is being deleted."""
        ...

    def applied(self, crd: dict[str, object], given: Given) -> dict[str, object]:
        """Serve what a definition says, and return it as it is to be stored."""
        ...

    def finish(self, name: str, *, now: float) -> None:
        """Let go of a definition that is being deleted and has no objects any more."""
        ...

    def stop_serving(self, name: str, *, now: float) -> None:
        """Serve a definition no longer."""
        ...


class Writes(Protocol):
    """What a strategy may do to other objects, and to what is served (``ServerState``)."""

    @property
    def objects(self) -> Stored:
        """What is stored."""
        ...

    @property
    def crds(self) -> Definitions:
        """The custom resource definitions."""
        ...

    def fields_of(self, kind: ResourceType[Resource], namespace: str, name: str) -> dict[str, object]:
        """Return an object, or refuse with 404."""
        ...

    def put(self, kind: ResourceType[Resource], fields: dict[str, object]) -> None:
        """Store an object that is there anew, as it is given."""
        ...

    def update_status(self, kind: ResourceType[Resource], fields: dict[str, object], given: Given) -> None:
        """Store an object with another status, as a write to its ``/status`` does."""
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
    ) -> object:
        """Delete an object."""
        ...

    def create_beside(self, kind: ResourceType[Resource], fields: dict[str, object], *, uid: str, now: float) -> None:
        """Create an object without a namespace that belongs to another one."""
        ...

    def remove_beside(self, kind: ResourceType[Resource], name: str) -> None:
        """Remove such an object."""
        ...

    def delete_all(self, resource: str, *, now: float) -> None:
        """Delete all objects of a definition's resource, by its plural and group."""
        ...


CLIENTS_METADATA: Final = frozenset({"annotations", "finalizers", "generateName", "labels", "ownerReferences"})
"""What of metadata is the client's to change."""


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """What a kind does so or otherwise; those of the built-in kinds are in their table.

    Attributes:
        generation: Whether the server counts ``metadata.generation`` (``PrepareForCreate``).
        counted: What of metadata raises it, too: a slice's labels say which Service it is of, and annotations of a
            Deployment are copied to its replica sets.
        unconditional_update: Whether an update may come without a resource version; the last writer then wins
            (``AllowUnconditionalUpdate``).
        create_on_update: Whether a PUT of an object that is not there creates it (``AllowCreateOnUpdate``).
        returned_when_deleted: Whether a DELETE that removes an object answers with it (``ReturnDeletedObject``).
        name_form: What a name has to be: a subdomain, a label, or a segment of a path.
        base_rechecked: Whether an update of a whole object has its ``generateName`` looked at again.
        any_finalizer: Whether finalizers need no domain.
        status_metadata: dict[str, object] of metadata that a write to ``/status`` changes, too (``PrepareForUpdate``).
        status_restores: What that write puts back before metadata is looked at: nothing, the mark of its deletion, or
            all of metadata.
        self_described: Whether items of lists and discovery say group, version and kind in full.
        protobuf: Whether objects can be sent and asked for in protobuf.
        strategic_merge: Whether they can be patched so.
        own_finalizers: Whether the names of finalizers are known, so that none is warned of.
    """

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
"""Those of most built-in kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a subresource is asked.

    Attributes:
        namespace: Namespace of the object.
        name: Name of the object.
        fields: What was sent.
        query: What stands behind the path.
        dry_run: Whether nothing is to be stored.
    """

    namespace: str
    name: str
    fields: dict[str, object]
    query: Mapping[str, str]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource that is more than a part of its object: the kind that it takes and gives, and what can be done.

    Attributes:
        name: Name in the path, such as ``status``.
        group: Group of the kind that it takes, if another than the resource's own.
        version: The same for the version.
        kind: The kind of the objects that it takes.
        verbs: What can be done with it.
        answer: Does what is asked; None if only the server's driver can.
        takes_object: Whether what is sent is an object of that kind, and not a stream.
        options: The options of a stream, by their names in the query, with their types.
        done: HTTP status of an answer that was given; 204 has no body.
    """

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]
    answer: Callable[[Asked, Writes, Given], None] | None = None
    takes_object: bool = True
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])
    done: int = 201

    @property
    def api_version(self) -> str:
        """Of the kind that it takes."""
        return f"{self.group}/{self.version}" if self.group else "v1"


@final
@dataclass(frozen=True, slots=True)
class Conversion:
    """The two ways between a version that is served and the one that is stored; neither changes its argument."""

    from_stored: Callable[[dict[str, object]], dict[str, object]]
    to_stored: Callable[[dict[str, object]], dict[str, object]]


@final
@dataclass(frozen=True, slots=True)
class Protection:
    """What keeps an object as long as it is in use: a finalizer that each new one gets, and that a controller takes.

    Attributes:
        finalizer: The finalizer's name.
        in_use: Tells whether the object, which is being deleted, is in use.
    """

    finalizer: str
    in_use: Callable[[Resource, Stored], bool]


def _nothing(*_: object) -> None:
    return


def _none(*_: object) -> tuple[()]:
    return ()


def _as_it_is(
    _before: dict[str, object] | None, after: dict[str, object], _writes: Writes, _given: Given
) -> dict[str, object]:
    return after


def _no_holders(_obj: dict[str, object]) -> bool:
    return False


def _no_text(_obj: dict[str, object]) -> str:
    return ""


def _no_default(_listed: Sequence[Mapping[str, object]]) -> str:
    return ""


def _no_grace(_obj: dict[str, object], _asked: int | None) -> int:
    return 0


def _no_cells(_obj: Mapping[str, object], _now: float) -> dict[str, object]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One kind's strategy; a kind says only what it has of its own.

    Attributes:
        defaults: By the names of types, what fills in a struct, in place, where a field follows from others; plain
            defaults are there already, and what is below is not yet filled in.
        default: Completes an object as sent.
        conversion: How the objects of this version are stored, if as another one.
        keep: Carries over, from the object as it is into the one that is to be, what the server has added.
        prepare_new: Sets what counts as written by a new object's author.
        prepare_update: Sets, in the second of two objects, what an update of the whole leaves as it was.
        prepare_status: The same for an update of the status.
        parts: By the name of a subresource, what the object becomes when the second one is written to it.
        checks: By the names that the rules of types have for them, what finds something wrong with one value.
        validate: Finds what is wrong with an object, new or changed as a whole, beyond the rules of its type.
        validate_new: Finds what a new object may not have.
        validate_update: Finds what a change of the first object into the second may not change.
        validate_status: Finds what is wrong with the second of two objects, after a write of its status.
        warn: Finds what the author of an object, new or changed as a whole, is to be warned about.
        warn_new: Finds what the author of a new object is to be warned about.
        warn_wanted: Finds what there is to be warned about in what is wanted, in a new object or if that has changed.
        warn_update: Finds what the author of a change of the first object into the second is to be warned about.
        warn_status: Warnings for the author of a new status.
        subresources: Those that are more than a part of their object.
        posts_to: What is posted to the collection goes to this subresource of the object of its name.
        row_conditions: Tells the conditions of an object's row in a table.
        reported: Objects that the server reports itself and does not store.
        row_order: Sort key for the rows of a list's table; None for the order of the list.
        default_of: Names the object that a table of all of a list marks as the default one, "" for none.
        finish_new: Adds what the server adds to a new object, and finds what it asks for and cannot have.
        finish_update: The same for a change of the first object into the second.
        check_new: Refuses a new object, by the resource's plural and group, before it is looked at.
        store: Does what storing an object (the first one is what it was, None for a new one) brings with it, and
            returns it as it is to be stored.
        mark: Changes an object that gets its mark of deletion.
        marked: Does what else comes with the mark.
        removed: Does what comes with an object's removal.
        is_held: Tells whether something besides ``metadata.finalizers`` holds an object that is being deleted.
        grace: Tells the seconds that an object gets to end, by those that were asked for, if any.
        finalizers: What every object gets with its mark.
        dependents: Handling of dependents by a delete that specifies no policy; ``ignored`` disables policies.
        counts_empty: Field in which an empty list or map counts as a change at each update, although it is not stored.
        delete_warning: Warning for a client whose delete specifies no policy.
        protection: What keeps an object that is in use; None for nothing.
        marked_when_removed: Whether an object is marked even if it is removed at once.
        status_when_new: Whether the author of a new object may write its status.
        reset_fields: By subresource, fields that a write to it resets, which are nobody's then, in the form of
            ``fieldsV1``; besides those that all kinds have.
        why_unserved: Tells why what an object defines is not served, "" if it is.
        cells: By the names of its columns, the cells of an object's row that the kind's table does not say.
        timed_cells: Computes those that depend on the time, or on each other.
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
    finish_new: Callable[[dict[str, object], Stored, Given], Iterable[SchemaError]] = _none
    finish_update: Callable[[dict[str, object], dict[str, object], Stored, Given], Iterable[SchemaError]] = _none
    subresources: tuple[Subresource, ...] = ()
    posts_to: tuple[ResourceType[Resource], str] | None = None
    row_conditions: Callable[[Mapping[str, object]], Sequence[Mapping[str, str]]] = _none
    reported: tuple[Resource, ...] = ()
    row_order: Callable[[Mapping[str, Any]], Any] | None = None
    default_of: Callable[[Sequence[Mapping[str, object]]], str] = _no_default
    check_new: Callable[[str, Writes], None] = _nothing
    store: Callable[[dict[str, object] | None, dict[str, object], Writes, Given], dict[str, object]] = _as_it_is
    mark: Callable[[dict[str, object]], None] = _nothing
    marked: Callable[[Resource, Writes, float], None] = _nothing
    removed: Callable[[str, Resource, Writes, float], None] = _nothing
    is_held: Callable[[dict[str, object]], bool] = _no_holders
    grace: Callable[[dict[str, object], int | None], int] = _no_grace
    finalizers: tuple[str, ...] = ()
    dependents: Literal["deleted", "orphaned", "ignored"] = "deleted"
    delete_warning: str = ""
    counts_empty: str = ""
    protection: Protection | None = None
    marked_when_removed: bool = False
    status_when_new: bool = False
    reset_fields: Mapping[str, dict[str, object]] = field(default_factory=dict[str, dict[str, object]])
    why_unserved: Callable[[dict[str, object]], str] = _no_text
    cells: Mapping[str, Cell] = field(default_factory=dict[str, Cell])
    timed_cells: Callable[[Mapping[str, object], float], Mapping[str, object]] = _no_cells


PLAIN: Final = Strategy()
