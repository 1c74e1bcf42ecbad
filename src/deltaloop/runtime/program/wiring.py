"""Connection of declared controllers to caches, and collection of their RBAC rules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
from msgspec.structs import replace

from deltaloop._internal.tracebacks import error_text
from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.managed_fields import strip_managed_fields
from deltaloop.api.resource import Resource, untyped
from deltaloop.api.resource_type import Kind, ResourceType, as_kind
from deltaloop.api.times import utc_now
from deltaloop.cache.errors import IndexerConflictError
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.informer import Informer
from deltaloop.cache.informer_options import InformerOptions
from deltaloop.client.client import Client
from deltaloop.runtime.controller import Controller, as_watch, kinds_declared
from deltaloop.runtime.core.access import READ_VERBS, AccessRule, Permission, implied_rules, rules_for, rules_of_access
from deltaloop.runtime.core.declared_access import DeclaredAccess
from deltaloop.runtime.core.requests import Mapper, own_key, owner_key
from deltaloop.runtime.enqueue import Enqueue
from deltaloop.runtime.errors import InvalidControllerError
from deltaloop.runtime.mapping import CachedMapper, mapping_by_index, with_caches
from deltaloop.runtime.objects.cached_views import CacheView, Views
from deltaloop.runtime.objects.caches import Caches
from deltaloop.runtime.reconcile.loop import ReconcileLoop
from deltaloop.runtime.sources import Watch

if TYPE_CHECKING:
    from deltaloop.runtime.core.children import ChildKind
    from deltaloop.runtime.program.shards import MemberWork

_logger: Final = logging.getLogger("deltaloop.runtime")

CACHE_VERBS = ("list", "watch")


@final
class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """One kind that a controller watches; without a mapper, its changes queue no keys."""

    kind: ResourceType[Any]
    watch: Watch
    mapper: Mapper | CachedMapper | None
    source: str


@final
class Wires(msgspec.Struct, frozen=True, kw_only=True):
    """All kinds that one controller watches and writes, with their resource types."""

    controller: Controller
    kind: ResourceType[Any]
    wires: tuple[Wire, ...]
    owned: tuple[ResourceType[Any], ...]
    children: tuple[ChildKind, ...]
    tracked: tuple[ResourceType[Any], ...]
    writes: tuple[tuple[ResourceType[Any], Permission], ...]

    def rules(self, namespace: str | None, *, read_verbs: Sequence[str] = READ_VERBS) -> list[AccessRule]:
        """Return the rules that the controller needs, in one namespace or all (None)."""
        rules: list[AccessRule] = []
        for wire in self.wires:
            rules.extend(rules_for(wire.kind, read_verbs, namespace=wire.watch.namespace or namespace))
        place = self.controller.namespace or namespace
        for kind in self.tracked:
            rules.extend(rules_for(kind, read_verbs, namespace=place))
        for kind, access in self.writes:
            rules.extend(rules_of_access(access, kind=kind, namespace=place))
        return rules

    def declared(self, namespace: str | None) -> DeclaredAccess:
        """Return the access that the controller declares; ``namespace`` is as for ``rules``."""
        place = self.controller.namespace or namespace
        known = {str(kind) for kind, _ in self.writes}
        written = [item if isinstance(item, Permission) else Permission(item) for item in self.controller.writes]
        later = [(access, place) for access in written if str(access.resource) not in known]
        return DeclaredAccess([*self.rules(namespace), *self.implied_rules(namespace)], later)

    def implied_rules(self, namespace: str | None) -> list[AccessRule]:
        """Return additional rules for roles that the controller may need; ``namespace`` is as for ``rules``."""
        place = self.controller.namespace or namespace
        return implied_rules(self.kind, owned=self.owned, writes=self.writes, namespace=place)


def wires_of(controller: Controller, known: Mapping[str, ResourceType[Any]]) -> Wires:
    """Return the kinds that a controller watches and writes; ``known`` can lack kinds that are only written."""

    def kind_of(kind: Kind) -> ResourceType[Any]:
        named = as_kind(kind)
        return named if isinstance(named, ResourceType) else known[named]

    own = kind_of(controller.resource)
    predicates = controller.predicates
    if controller.finalizer:
        from deltaloop.runtime.core.finalizing import with_deletions

        predicates = with_deletions(predicates, controller.finalizer)
    primary = Watch(
        controller.resource,
        predicates=predicates,
        namespace=controller.namespace,
        indexers=controller.indexers,
    )
    wires = [Wire(kind=own, watch=primary, mapper=own_key, source="informer")]
    wires.extend(
        Wire(kind=kind_of(watch.resource), watch=watch, mapper=owner_key(own), source=watch.source or "owner")
        for watch in (_beside(controller, as_watch(owned)) for owned in controller.owns)
    )
    child_kinds: list[ChildKind] = []
    child_writes: list[tuple[ResourceType[Any], Permission]] = []
    if controller.children:
        from deltaloop.runtime.core.children import CHILD_VERBS, OWNER_INDEX, ChildKind, child_owner, owner_uids

        for watch in (_beside(controller, as_watch(child)) for child in controller.children):
            kind, place = kind_of(watch.resource), watch.namespace
            indexed = replace(watch, indexers={**watch.indexers, OWNER_INDEX: owner_uids})
            by_owner = child_owner(own, controller.name)
            wires.append(Wire(kind=kind, watch=indexed, mapper=by_owner, source=watch.source or "owner"))
            child_kinds.append(ChildKind(kind, place))
            child_writes.append((kind, Permission(kind, verbs=CHILD_VERBS, namespace=place or "")))
    for watch in map(as_watch, controller.watches):
        mapper = mapping_by_index(own, watch.by_index) if watch.by_index else watch.to or own_key
        wires.append(Wire(kind=kind_of(watch.resource), watch=watch, mapper=mapper, source=watch.source or "watch"))
    wires.extend(
        Wire(kind=kind_of(watch.resource), watch=watch, mapper=None, source="")
        for watch in map(as_watch, controller.reads)
    )
    writes = tuple(
        (kind_of(access.resource), access)
        for access in (item if isinstance(item, Permission) else Permission(item) for item in controller.writes)
        if isinstance(access.resource, ResourceType) or access.resource in known
    )
    if controller.finalizer:
        writes = (*writes, (own, Permission(own, verbs=("patch",))))
    owned = tuple(kind_of(as_watch(watch).resource) for watch in controller.owns)
    return Wires(
        controller=controller,
        kind=own,
        wires=tuple(wires),
        owned=(*owned, *(child.kind for child in child_kinds)),
        children=tuple(child_kinds),
        tracked=tuple(map(kind_of, controller.tracks)),
        writes=(*writes, *child_writes),
    )


def _beside(controller: Controller, watch: Watch) -> Watch:
    """Limit a watch of owned objects to the controller's namespace, where namespaced owners own objects."""
    return watch if watch.namespace is not None else replace(watch, namespace=controller.namespace)


def kinds_named(controller: Controller, *, writes: bool) -> set[str]:
    return {kind for kind in kinds_declared(controller, writes=writes) if isinstance(kind, str)}


async def look_up(client: Client, controllers: Collection[Controller]) -> dict[str, ResourceType[Any]]:
    """Look up the kinds that are given by name, or raise UnknownResourceError."""
    watched = {name for controller in controllers for name in kinds_named(controller, writes=False)}
    written = {name for controller in controllers for name in kinds_named(controller, writes=True)} - watched
    known: dict[str, ResourceType[Any]] = {}
    for name in (*sorted(watched), *sorted(written)):
        try:
            known[name] = await _find(client, name)
        except UnknownResourceError as error:
            from deltaloop.runtime.reconcile.remedies import note_unknown_kind

            note_unknown_kind(error, [place for controller in controllers for place in _places_of(name, controller)])
            if name in watched:
                raise
            # A kind that is only written can be created later.
            extra = {"kind": name, "raised": error_text(error)}
            _logger.warning("kind does not exist yet, or has another name", extra=extra)
    return known


def _places_of(name: str, controller: Controller) -> list[str]:
    lists = ("owns", "children", "watches", "reads", "tracks", "writes")
    places = ["resource"] if controller.resource == name else []
    places += [each for each in lists if name in map(_kind_in, getattr(controller, each))]
    return [f"{place}= of controller {controller.name!r}" for place in places]


def _kind_in(item: Kind | Watch | Permission) -> Kind:
    return item.resource if isinstance(item, Watch | Permission) else item


async def _find(client: Client, name: str) -> ResourceType[Any]:
    try:
        return parse_resource_type(name)
    except UnknownResourceError:
        return await client.resource(name)


def connect_caches(
    loop: ReconcileLoop,
    wires: Wires,
    factory: InformerFactory,
    views: Views,
    *,
    namespace: str | None,
    options: InformerOptions,
    clock: Callable[[], float],
    wall_clock: Callable[[], datetime] = utc_now,
    work: MemberWork | None = None,
) -> list[Informer[Any]]:
    """Connect a controller's kinds to its queue, make their caches readable, and return the informers."""
    informers: list[Informer[Any]] = []
    controller = wires.controller.name
    caches = Caches(controller)
    cleanup = wires.controller.declared_cleanup
    if cleanup is not None:
        from deltaloop.runtime.reconcile.finalizing import FinalizedRuns

        loop.finalizing = FinalizedRuns(
            wires.controller, cleanup, wires.kind, wall_clock=wall_clock, ask_after=loop.ask_after
        )
    if wires.children:
        from deltaloop.runtime.core.children import ChildKind
        from deltaloop.runtime.objects.children import DeclaredChildren

        by_namespace = loop.share is not None and loop.share.by == "namespace" and wires.kind.namespaced
        kinds = [
            ChildKind(
                child.kind,
                _held(child.kind, child.namespace, namespace),
                by_namespace and child.kind.namespaced and child.namespace is None,
            )
            for child in wires.children
        ]

        loop.shared.children = DeclaredChildren(wires.kind, tuple(kinds))
    for wire in wires.wires:
        watch = wire.watch
        place = watch.namespace if wire.kind.namespaced else None
        shard = None if work is None else work.selector(wire, wires)
        try:
            informer = factory.informer(
                untyped(wire.kind),  # handlers, predicates and views need untyped objects
                namespace=place,
                shard_selector=shard,
                indexers=watch.indexers,
                label_selector=watch.label_selector,
                field_selector=watch.field_selector,
            )
        except IndexerConflictError as error:
            names = ", ".join(map(repr, error.names))
            problem = f"of {wire.kind} must not have another function for the existing index {names}. Rename it."
            raise InvalidControllerError(controller, problem, argument="indexers") from error
        informers.append(informer)
        if work is not None and shard is not None:
            work.informers[informer] = shard.field
        if loop.own_cache is None:  # the first wire is the controller's own kind
            loop.own_cache, loop.cached = informer.lister(), informer.indexer.get_by_key
        if not watch.label_selector and not watch.field_selector:
            held = _held(wire.kind, place, namespace)
            share = None if shard is None else loop.share
            view = CacheView(informer, namespace=held, transform=cached_form(options), clock=clock, share=share)
            caches.add(watch.resource, wire.kind, views.add(wire.kind, view))
        if wire.mapper is not None:
            name = f"{controller}: {wire.source} {wire.kind}"
            handler = Enqueue(
                loop.inbox,
                with_caches(wire.mapper, caches),
                source=wire.source,
                name=name,
                predicates=watch.predicates,
                on_trigger=loop.metrics.triggered if loop.metrics.is_on else None,
                on_gone=loop.object_gone if wire is wires.wires[0] else None,
                clock=clock,
            )
            loop.at_close(handler.close)
            loop.registrations.append(informer.add_event_handler(handler, name=name))
    return informers


def connect_tracker(
    loop: ReconcileLoop,
    wires: Wires,
    client: Client,
    views: Views,
    *,
    namespace: str | None,
    sync_timeout: float,
    options: InformerOptions,
    clock: Callable[[], float],
) -> None:
    """Let a controller's reconciles track objects of its declared kinds."""
    if not wires.tracked:
        return
    from deltaloop.runtime.objects.tracking import Tracker

    declared = zip(map(str, wires.controller.tracks), wires.tracked, strict=True)
    kinds = {**dict(declared), **{str(kind): kind for kind in wires.tracked}}
    loop.shared.tracker = Tracker(
        wires.controller.name,
        kinds,
        client=client,
        queue=loop.inbox,
        on_trigger=loop.metrics.triggered if loop.metrics.is_on else None,
        views=views,
        namespace=wires.controller.namespace or namespace,
        sync_timeout=sync_timeout,
        options=options,
        transform=cached_form(options),
        clock=clock,
    )


def _held(kind: ResourceType[Any], place: str | None, namespace: str | None) -> str | None:
    """Return the only namespace of a cache; None if it has all namespaces."""
    return (place or namespace) if kind.namespaced else None


def cached_form(options: InformerOptions) -> Callable[[Resource], Resource] | None:
    """Return the transformation that informers apply before caching; None if there is none."""
    transform = options.transform
    if options.keep_managed_fields:
        return transform
    if transform is None:
        return strip_managed_fields
    return lambda obj: transform(strip_managed_fields(obj))
