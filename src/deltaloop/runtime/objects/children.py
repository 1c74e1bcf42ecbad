"""Children of the reconciled object: server-side apply and pruning.

The current state is read from the caches, with own writes. An apply that would change nothing is not sent.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeAlias, cast, final

import msgspec

from deltaloop.api.json_values import mapping
from deltaloop.api.kinds import BUILT_IN
from deltaloop.api.kstatus import object_status
from deltaloop.api.references import ObjectReference, reference_to
from deltaloop.api.resource import Resource, untyped
from deltaloop.api.resource_type import ResourceType, resource_type_of
from deltaloop.api.status import ApiError, ConflictError, NotFoundError
from deltaloop.client import DeleteOptions, WriteOptions
from deltaloop.client.core.object_encoding import encode_object
from deltaloop.runtime.core.children import (
    OWNER_INDEX,
    Child,
    ChildKind,
    Identity,
    Standing,
    controlling_owner,
    desired_child,
    identity_of,
    may_be_pruned,
    refuse_namesakes,
    standing,
)
from deltaloop.runtime.core.drift import Known, KnownChildren, differences
from deltaloop.runtime.core.own_writes import path_text
from deltaloop.runtime.core.requests import Request
from deltaloop.runtime.objects.builtin_types import type_of
from deltaloop.runtime.objects.errors import InvalidChildrenError, NotOwnedError, OwnerGoneError
from deltaloop.runtime.objects.ownership import AlreadyOwnedError
from deltaloop.runtime.reconcile.calls import NotAwaited, names_calls
from deltaloop.runtime.reconcile.client import ReconcileClient

_There: TypeAlias = tuple[Standing, Resource | None]

_VERSION_OF_NONE: Final = "1"
"""Resource version for applies that must create the object.

With a version, an apply creates a missing object, and conflicts if the object has another version. No object has this
version, because etcd's first write has revision 2.
"""


@final
@dataclass(frozen=True, slots=True)
class DeclaredChildren:
    """Children that a controller declares, and this program's knowledge about them."""

    own: ResourceType[Any]
    kinds: tuple[ChildKind, ...]
    known: KnownChildren = field(default_factory=KnownChildren)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedChildren:
    """Result of ``ctx.children.apply``.

    Attributes:
        written: Children that were created or changed.
        unchanged: Children that already matched the desired state.
        pruned: Children that were deleted because they are no longer desired.
        not_ready: Children that are not ready, with the reason.
        waiting: Children that were not applied because an earlier group is not ready.
    """

    written: tuple[ObjectReference, ...] = ()
    unchanged: tuple[ObjectReference, ...] = ()
    pruned: tuple[ObjectReference, ...] = ()
    not_ready: Mapping[ObjectReference, str] = field(default_factory=dict[ObjectReference, str])
    waiting: tuple[ObjectReference, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether all children are applied and ready."""
        return not self.not_ready and not self.waiting


@final
@names_calls("ctx.children")
class Children:
    """Children of the reconciled object, available as ``ctx.children``."""

    def __init__(
        self,
        request: Request,
        declared: DeclaredChildren,
        *,
        client: ReconcileClient,
        controller: str,
        logger: logging.LoggerAdapter[logging.Logger],
    ) -> None:
        self._request = request
        self._declared = declared
        self._client = client
        self._not_awaited: NotAwaited = client._not_awaited  # noqa: SLF001 - of the same family
        self._way = client._cached  # noqa: SLF001 - of the same family
        self._controller = controller
        self._logger = logger
        self._options = WriteOptions(field_manager=f"{controller}/children")
        self._applied = False

    async def apply(
        self,
        *desired: object | Sequence[object],
        adopt: bool = False,
        prune_all: bool = False,
        garbage_collected: bool = True,
    ) -> AppliedChildren:
        """Apply the desired children of the object, all in one call.

        Each child is applied with forced server-side apply if that changes it. The reconciled object becomes its
        controlling owner. After all children have been applied, other children of this controller are deleted.

        All children are checked before the first write. If the server rejects some of a group, the rest of the group is
        still applied, and nothing is deleted. After a cancellation, the next reconcile continues.

        Args:
            *desired: All children: mappings or resources with ``apiVersion``, ``kind`` and a name, or objects of the
                class of a declared kind. Their namespace is the owner's by default. Lists are groups: a group is
                applied when the groups before it are ready. This call does not wait for readiness, because a change of
                a child reconciles its owner.
            adopt: Whether to take over existing objects of these names that have no controlling owner.
            prune_all: Whether to delete all children if ``desired`` is empty.
            garbage_collected: Whether the garbage collector deletes the children with the object. If False, they have
                no owner reference and stay until the object's cleanup calls ``apply(prune_all=True)``, even with
                foreground deletion. The object then needs a finalizer.

        Raises:
            InvalidChildrenError: If the children cannot be applied. Reasons are an undeclared kind, a duplicate name, a
                child without a finalizer on its owner although it is in another namespace or not garbage collected, an
                empty list while children exist, or a second call.
            AlreadyOwnedError: If an object of that name has another controlling owner.
            NotOwnedError: If an object of that name has no controlling owner and ``adopt`` is not set.
            OwnerGoneError: If the object is gone, being deleted, or replaced by an object of the same name. Before
                the first creation, this is checked once with the server.
            ApiError: If the server rejects a child; several errors are raised as an ``ExceptionGroup``.
        """
        groups = [[*map(self._plain, group)] for group in _groups(desired)]
        if self._applied:
            raise InvalidChildrenError(
                "ctx.children.apply must be called once per reconcile. Pass all children in one call."
            )
        owner = await self._owner(may_go=prune_all)
        wanted = [[self._child(*each, owner, garbage_collected) for each in group] for group in groups]
        everything = [child for group in wanted for child in group]
        refuse_namesakes(everything)
        there = await self._there(everything, owner, adopt=adopt)
        dropped = await self._not_desired(owner, {child.identity for child in everything})
        if dropped and not everything and not prune_all:
            problem = f"must not be empty: {owner.key} has {len(dropped)}. Pass prune_all=True to delete all of them."
            raise InvalidChildrenError(problem, argument="children")
        self._applied = True
        run = _Run(owner, may_go=not everything)
        for done, group in enumerate(wanted, start=1):
            await self._apply_group(group, there, run)
            if run.not_ready and wanted[done:]:
                return run.result(waiting=chain.from_iterable(wanted[done:]))
        await self._prune(dropped, run)
        return run.result()

    # -- desired state

    def _plain(self, obj: object) -> tuple[ChildKind, dict[str, object]]:
        """Return the kind of a desired object, and the object as decoded JSON."""
        declared = self._kind_of(obj)
        return declared, msgspec.json.decode(encode_object(declared.kind, obj).body, type=dict[str, object])

    def _kind_of(self, obj: object) -> ChildKind:
        if isinstance(obj, Resource):
            named = f"{obj.api_version}/{obj.kind}"
        elif isinstance(obj, Mapping):
            fields = cast("Mapping[str, object]", obj)
            named = f"{fields.get('apiVersion')}/{fields.get('kind')}"
        else:
            named = type(obj).__name__
        for declared in self._declared.kinds:
            kind = declared.kind
            if named == str(kind) or (kind.model is not None and isinstance(obj, kind.model)):
                return declared
        if not isinstance(obj, Resource | Mapping) and resource_type_of(type(obj)) is None:
            got = f"the class {obj.__name__}" if isinstance(obj, type) else f"a {named}"
            raise InvalidChildrenError(
                f"must be a Resource, a mapping or an object of a @dl.custom_resource class, got {got}.",
                argument="child",
            )
        if named == "None/None":
            raise InvalidChildrenError("must have apiVersion and kind.", argument="child")
        alike = sorted(str(each.kind) for each in self._declared.kinds if each.kind.kind == named.rpartition("/")[2])
        if alike:
            raise InvalidChildrenError(f"must be a declared kind. Write {' or '.join(alike)}.", argument=str(named))
        remedy = f"Write @dl.controller(..., children=[..., {_served(named)!r}])"
        raise InvalidChildrenError(f"must be a declared kind. {remedy}.", argument=str(named))

    def _child(self, declared: ChildKind, fields: dict[str, object], owner: Resource, garbage_collected: bool) -> Child:
        own, controller = self._declared.own, self._controller
        child = desired_child(
            declared, fields, owner=owner, own=own, controller=controller, garbage_collected=garbage_collected
        )
        if declared.in_shares and child.namespace != owner.namespace:
            raise InvalidChildrenError(
                "must be in the namespace of its owner, because another process caches the namespace. Declare the kind "
                "as dl.Watch(..., namespace=...).",
                argument=str(child.reference),
            )
        return child

    # -- observed state

    async def _owner(self, *, may_go: bool = False, uid: str = "", live: bool = False) -> Resource:
        """Return the reconciled object from the caches or, if ``live``, from the server."""
        name, namespace, own = self._request.name, self._request.namespace, self._declared.own
        way = self._way
        known = way.kinds.get(id(own)) or await way.bind(own)
        found = await (way.server if live else way).read(known, name, must_exist=False, namespace=namespace)
        if found is None or (found.deletion_timestamp is not None and not may_go) or uid not in ("", found.uid):
            problem = "is gone" if found is None else "is being deleted" if uid in ("", found.uid) else "was replaced"
            raise OwnerGoneError(f"{own.kind} {self._request.key}", problem)
        return found

    async def _there(self, children: Sequence[Child], owner: Resource, *, adopt: bool) -> dict[ObjectReference, _There]:
        """Return the present objects under the desired names, and reject those that belong to others."""
        own, controller, way = self._declared.own, self._controller, self._way
        found: dict[ObjectReference, _There] = {}
        for child in children:
            known = way.kinds.get(id(child.kind)) or await way.bind(child.kind)
            present = await way.read(known, child.name, must_exist=False, namespace=child.namespace or None)
            whose = standing(present, owner=owner, own=own, controller=controller)
            other = None if present is None else controlling_owner(present)
            if whose is Standing.ANOTHERS and other is not None:
                raise AlreadyOwnedError(str(child.reference), other)
            if whose is Standing.NOBODYS and not adopt:
                raise NotOwnedError(str(child.reference))
            found[child.reference] = whose, present
        return found

    async def _not_desired(self, owner: Resource, desired: set[Identity]) -> list[Resource]:
        found: list[Resource] = []
        for declared in self._declared.kinds:
            kind, place = untyped(declared.kind), declared.namespace
            found += await self._client.by_index(kind, OWNER_INDEX, owner.uid, namespace=place)
        controller = self._controller
        return [obj for obj in found if may_be_pruned(obj, owner.uid, controller) and identity_of(obj) not in desired]

    # -- writes

    async def _apply_group(self, group: Sequence[Child], there: Mapping[ObjectReference, _There], run: _Run) -> None:
        failed: list[ApiError] = []
        for child in group:
            whose, present = there[child.reference]
            if whose in (Standing.GOING, Standing.OF_PREDECESSOR):
                run.not_ready[child.reference] = whose.value
                continue
            stored = present
            if present is not None and self._is_as_applied(child, present):
                run.unchanged.append(child.reference)
            else:
                try:
                    stored = await self._apply(child, present, run)
                except ApiError as error:
                    error.add_note(f"while {child.reference} was applied as a child of {run.owner.key}")
                    failed.append(error)
                    continue
                run.written.append(child.reference)
            status = object_status(stored)
            if not status.is_current:
                run.not_ready[child.reference] = status.message
        if len(failed) == 1:
            raise failed[0]
        if failed:
            raise ExceptionGroup(f"cannot apply {len(failed)} children of {run.owner.key}", failed)

    def _is_as_applied(self, child: Child, present: Resource) -> bool:
        known = self._declared.known.get(present.uid, child.fingerprint)
        if known is not None and known.version == present.resource_version:
            return True
        wanted = () if known is None else known.differences
        if differences(type_of(child.kind), child.body, present.to_dict()) != wanted:
            return False
        self._declared.known.remember(present.uid, Known(child.fingerprint, present.resource_version, wanted))
        return True

    async def _apply(self, child: Child, present: Resource | None, run: _Run) -> Resource:
        owner = run.owner
        await self._owner(uid=owner.uid)
        metadata = mapping(child.body["metadata"])
        if present is not None:
            # Change only the object that was checked, not a successor of the same name.
            metadata = {**metadata, "uid": present.uid}
        else:
            await self._ask_for_owner(run)
            # An object can exist although no cache shows it, for example one that this controller made for the owner's
            # successor.
            metadata = {**metadata, "resourceVersion": _VERSION_OF_NONE}
        try:
            stored = await self._client.apply(
                untyped(child.kind),
                {**child.body, "metadata": metadata},
                namespace=child.namespace or None,
                options=self._options,
                force=True,
            )
        except ConflictError as error:
            if present is None:
                error.add_note("it exists, though the cache of this program does not show it yet: it was left alone")
            raise
        self._take_answer(child, stored)
        return stored

    async def _ask_for_owner(self, run: _Run) -> None:
        """Check with the server, once per call, that the owner still exists.

        Caches can be stale after a restart. The garbage collector deletes children of a missing owner, and that
        deletion would trigger reconciles that create them again.
        """
        if not run.asked:
            await self._owner(uid=run.owner.uid, live=True)
            run.asked = True

    def _take_answer(self, child: Child, stored: Resource) -> None:
        known = self._declared.known
        before = known.get(stored.uid, child.fingerprint)
        found = differences(type_of(child.kind), child.body, stored.to_dict())
        known.remember(stored.uid, Known(child.fingerprint, stored.resource_version, found))
        if found and (before is None or before.differences != found):
            fields = [path_text(difference.path) for difference in found]
            extra = {"child": str(child.reference), "fields": fields}
            self._logger.info("server changed applied fields of a child", extra=extra)

    async def _prune(self, dropped: Sequence[Resource], run: _Run) -> None:
        for obj in dropped:
            await self._owner(may_go=run.may_go, uid=run.owner.uid)
            reference = _name_of(obj)
            # With the default policy, Jobs would leave their pods behind.
            options = DeleteOptions(propagation_policy="Background", uid=obj.uid)
            kind, place = cast("ResourceType[Resource]", obj.resource_type), obj.namespace or None
            try:
                await self._client.delete(kind, obj.name, namespace=place, options=options)
            except NotFoundError:
                pass
            except ConflictError:  # raise unless another object has this name now
                present = await self._client.live.find(kind, obj.name, namespace=place)
                if present is not None and present.uid == obj.uid:
                    raise
            self._declared.known.forget(obj.uid)
            run.pruned.append(reference)


@dataclass(slots=True)
class _Run:
    owner: Resource
    may_go: bool
    asked: bool = False
    written: list[ObjectReference] = field(default_factory=list[ObjectReference])
    unchanged: list[ObjectReference] = field(default_factory=list[ObjectReference])
    pruned: list[ObjectReference] = field(default_factory=list[ObjectReference])
    not_ready: dict[ObjectReference, str] = field(default_factory=dict[ObjectReference, str])

    def result(self, waiting: Iterable[Child] = ()) -> AppliedChildren:
        return AppliedChildren(
            written=tuple(self.written),
            unchanged=tuple(self.unchanged),
            pruned=tuple(self.pruned),
            not_ready=self.not_ready,
            waiting=tuple(child.reference for child in waiting),
        )


def _served(named: str) -> str:
    """Return the current kind if a built-in kind is named with an API version that is no longer served."""
    rest, _, kind = named.rpartition("/")
    group = rest.rpartition("/")[0]
    found = [known for known in BUILT_IN if known.kind == kind and group in (known.group, "extensions")]
    return named if named in map(str, found) or not found else str(found[0])


def _groups(desired: Sequence[object]) -> list[list[object]]:
    """Return the groups. Plain objects form one group, and each list is a group."""
    lists = [cast("Sequence[object]", given) for given in desired if isinstance(given, list | tuple)]
    if not lists:
        return [[*desired]] if desired else []
    if len(lists) < len(desired):
        raise InvalidChildrenError(
            "must not mix objects and lists. A list is a group, so put each object into a list.", argument="children"
        )
    return [[*group] for group in lists]


def _name_of(obj: Resource) -> ObjectReference:
    """Return the object's reference without its UID."""
    found = reference_to(obj)
    return ObjectReference(api_version=found.api_version, kind=found.kind, namespace=found.namespace, name=found.name)
