"""Client of a reconcile, which reads from caches, writes to the server, and sees its own writes immediately.

A write's response overlays the cache until the cache has caught up (``core/overlay.py``). Writes are rejected after the
reconcile was told to stop or leadership was lost.

The client reads from the server if

- no cache has the kind and namespace;
- the cache cannot serve the request (field selector, version, subresource);
- the cache was not confirmed within ``with_max_staleness``; or
- a write of this program to the object has an unknown outcome, because its response is missing or it was canceled.
"""

from __future__ import annotations

import builtins
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, final, overload

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.keys import join_key
from deltaloop.api.list_options import ListOptions, parsed_selector
from deltaloop.api.resource import Resource, decoder
from deltaloop.api.resource_type import Kind, TypedKind
from deltaloop.client.client import Client
from deltaloop.client.discovery import BoundKind
from deltaloop.client.options import DeleteOptions, WriteCheck
from deltaloop.client.verbs.server import (
    EVERYTHING,
    UNSURE,
    Server,
    Unsure,
    Way,
    WriteRequest,
    both_checks,
    not_found,
    place_of,
    refuse_namespace,
)
from deltaloop.client.verbs.verbs import Verbs
from deltaloop.runtime.core.attribution import Attribution
from deltaloop.runtime.core.overlay import WriteKind
from deltaloop.runtime.core.own_writes import OwnWrite
from deltaloop.runtime.objects.cached_views import CacheView, Views
from deltaloop.runtime.reconcile.calls import NotAwaited, names_calls

if TYPE_CHECKING:
    from deltaloop.client.verbs.resource_list import ResourceList
    from deltaloop.client.verbs.server import WriteGuard

T = TypeVar("T")

_MANY: Final = 20
"""Number of uncertain objects from which one list is cheaper than single reads."""
_MOST_NOTED: Final = 100
_NO_HOME: Final = "the reconciled object has none"
_UNKNOWN: Final[dict[str, WriteKind]] = {"create": "create", "update": "update", "delete": "delete"}
_ANSWERED_OTHERWISE: Final = ("binding", "eviction", "scale")
"""Subresources whose writes change the object but return a different object."""


@final
class CachedWay(msgspec.Struct, eq=False):
    """Read and write path of one reconcile's verbs, with an empty ``home`` if requests must name a namespace."""

    _base: Server
    kinds: dict[int, BoundKind]
    write_query: Mapping[str, str]
    views: Views
    _attribution: Attribution
    by: tuple[str, int, str]
    home: str
    write_check: WriteCheck | None
    _server: Server | None = None
    write_guard: WriteGuard | None = None
    why_no_home: str = _NO_HOME
    max_staleness: float | None = None
    noted: builtins.list[OwnWrite] = []
    dropped: builtins.list[int] = []

    @property
    def server(self) -> Server:
        """Return the server behind the caches, with this reconcile's default namespace and checks."""
        if self._server is None:
            self._server = self._base.replaced(
                home=self.home,
                why_no_home=self.why_no_home,
                write_check=both_checks(self._base.write_check, self.write_check),
                write_guard=self.write_guard,
            )
        return self._server

    # -- reads

    def cached(self, known: BoundKind, name: str, namespace: str | None) -> Resource | Unsure | None:
        place = namespace or self.home
        if place and known.namespaced and self.max_staleness is None:
            views = self.views.bound[known]
            view = views.whole or views.find(place, name)
            if view is not None:
                return view.read(f"{place}/{name}")
        return UNSURE  # also for cluster-scoped objects

    async def read(
        self,
        known: BoundKind,
        name: str,
        *,
        must_exist: bool = True,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Resource | None:
        found = UNSURE if subresource else self.cached(known, name, namespace)
        if found is UNSURE:
            where = place_of(self, known, namespace)
            view = None if subresource else self.views.bound[known].find(where, name)
            key = join_key(where, name)
            if view is not None and view.is_uncertain(key):
                found = view.settle(key, await self._ask(known, name, where, timeout))
            elif view is not None and view.is_fresh(self.max_staleness):
                found = view.get(key)
            else:
                return await self.server.read(
                    known, name, must_exist=must_exist, namespace=namespace, subresource=subresource, timeout=timeout
                )
        # Return None without raising and catching an error, because a missing child is the normal start of a reconcile.
        if found is None and must_exist:
            raise not_found(known.type, name)
        return found

    async def list(
        self,
        known: BoundKind,
        *,
        namespace: str | None = None,
        options: ListOptions = EVERYTHING,
        timeout: float | None = None,
        metadata_only: bool = False,
    ) -> ResourceList[Any]:
        if namespace:
            refuse_namespace(known.type, namespace)
        by_label = options.label_selector
        view = self.views.of(known.type).find(namespace)
        # A cache returns lists of any length at once, like the server's watch cache.
        is_cached = options is EVERYTHING or options == ListOptions(label_selector=by_label, limit=options.limit)
        if view is None or not is_cached or not await self.settle(view, known, namespace, timeout):
            return await self.server.list(
                known, namespace=namespace, options=options, timeout=timeout, metadata_only=metadata_only
            )
        from deltaloop.client.verbs.resource_list import ResourceList  # for lists

        found = view.list(namespace, parsed_selector(by_label) if by_label else None)
        version = view.informer.resource_version
        if metadata_only:
            from deltaloop.client.core.metadata_only import metadata_of_list

            return metadata_of_list(ResourceList(tuple(found), version))
        return ResourceList(tuple(map(decoder(known.type), found)), version)

    async def settle(
        self, view: CacheView, known: BoundKind, namespace: str | None, timeout: float | None = None
    ) -> bool:
        """Resolve uncertain objects, and return whether the view can serve lists."""
        if not view.is_fresh(self.max_staleness) or view.has_unknown_names(namespace):
            return False
        keys = view.uncertain(namespace)
        if len(keys) >= _MANY:
            return False
        for key in keys:
            place, _, name = key.rpartition("/")
            view.settle(key, await self._ask(known, name, place, timeout))
        return True

    async def _ask(self, known: BoundKind, name: str, namespace: str | None, timeout: float | None) -> Resource | None:
        return await self.server.read(known, name, must_exist=False, namespace=namespace, timeout=timeout)

    # -- writes

    def write(self, request: WriteRequest) -> Coroutine[Any, Any, Any]:
        known, verb, name, namespace = request.kind, request.verb, request.name, request.namespace
        key = f"{namespace}/{name}" if namespace else name
        views = self.views.bound[known]
        view = (views.whole or views.find(namespace, name)) if name else None
        before = None if view is None else view.newest(key)
        if verb == "delete":
            # Delete only the object that this program has seen, not a successor of the same name.
            options = request.options if isinstance(request.options, DeleteOptions) else DeleteOptions()
            gone = "" if view is None or view.is_uncertain(key) else view.overlay.uid_of_gone(key)
            uid = options.uid or ("" if before is None else before.uid) or gone
            request = msgspec.structs.replace(request, options=options.replace(uid=uid))
        elif verb == "apply" and before is None and view is not None and not request.subresource:
            check = None if view.is_uncertain(key) else self.server.access_check
            if check is not None:
                check("create", known.type, namespace, "")  # this apply creates the object
        return self._base.write(request, self, key, before)

    async def bind(self, kind: Kind) -> BoundKind:
        return self.kinds.get(id(kind)) or await self._base.discovery.bind(kind)

    def newest(self, known: BoundKind, namespace: str | None, key: str) -> Resource | None:
        """Return the newest complete state of an object, or None if only the server knows it."""
        views = self.views.bound[known]
        view = views.whole or views.find(namespace, key.rpartition("/")[2])
        if view is None or not view.is_whole:
            return None
        found = view.read(key)
        return view.newest_whole(key) if found is UNSURE else found

    def wrote_live(self, request: WriteRequest, answer: Any) -> None:
        key, name = join_key(request.namespace, request.name), request.name
        view = self.views.of(request.kind.type).find(request.namespace, name) if name else None
        self.carried_out(request, key, None if view is None else view.newest(key), answer)

    def lost_sight(self, request: WriteRequest, key: str, before: Resource | None) -> None:
        """Mark the objects of a write with an unknown outcome, so that they are read from the server."""
        if request.options is not None and request.options.dry_run:
            return
        uid = "" if before is None else before.uid
        if request.verb == "delete" and isinstance(request.options, DeleteOptions):
            uid = request.options.uid
        seen = before.resource_version if before is not None and before.uid == uid else ""
        kind = _UNKNOWN.get(request.verb, "patch")
        if (request.subresource and kind == "create") or (kind == "update" and not request.version):
            kind = "patch"
        for view in self._written(request, request.name):
            if request.verb == "delete_collection":
                for obj in view.list(request.namespace, None):
                    view.lost_sight(obj.key, "delete", uid=obj.uid, version=obj.resource_version)
            elif request.generate_name:
                view.lost_sight_of_generated(join_key(request.namespace, request.generate_name))
            elif request.name:
                version = {"update": request.version, "create": ""}.get(kind, seen)
                view.lost_sight(key, kind, uid=uid, version=version)

    def carried_out(self, request: WriteRequest, key: str, before: Resource | None, answer: Any) -> None:
        if request.options is not None and request.options.dry_run:
            return
        known, verb, part = request.kind, request.verb, request.subresource or ""
        if verb == "delete_collection":
            for obj in answer or ():
                self._note(OwnWrite(verb="delete", kind=known.text, key=obj.key, uid=obj.uid))
                self._deleted(obj.uid)
                for view in self._written(request, obj.name):
                    view.lost_sight(obj.key, "delete", uid=obj.uid, version=obj.resource_version)
            return
        if verb == "delete" and (answer is None or not _still_there(answer)):
            self._gone(request, key, before, answer)
            return
        if part and part != "status":
            if part in _ANSWERED_OTHERWISE and before is not None:
                self._changed(request, before, "" if answer is None else answer.resource_version)
            return
        stored: Resource = answer
        uid, version, place = stored.uid, stored.resource_version, request.namespace
        base: str | None = request.version
        if verb == "create":
            before, base = None, (base or None) if part else ""
        elif not base:
            base = None if before is None else before.resource_version
        controller, number, reconciled = self.by
        self._attribution.wrote(uid, version, controller, number, reconciled, base)
        is_gone = stored.deletion_timestamp is not None and not _still_there(stored)  # the last finalizer was removed
        views = self.views.bound[known]
        for view in views.written(place, stored.name or request.name) if views.tracked else views.views:
            if view.namespace is None or view.namespace == place:
                if is_gone:
                    view.deleted(stored.key, uid=uid, version=version)
                else:
                    view.wrote(stored)
        self._note(OwnWrite(verb, known.text, stored.key, uid, part, version, before, stored))

    def _changed(self, request: WriteRequest, before: Resource, version: str) -> None:
        """Mark a changed object to be read from the server, unless its version is the same."""
        if version == before.resource_version:
            return
        if version:
            base = request.version or before.resource_version
            self._attribution.wrote(before.uid, version, *self.by, base)
        kind: WriteKind = "delete" if request.subresource == "eviction" else "update"
        for view in self._written(request, request.name):
            view.lost_sight(before.key, kind, uid=before.uid, version=before.resource_version)

    def _gone(self, request: WriteRequest, key: str, before: Resource | None, answer: Resource | None) -> None:
        uid = request.options.uid if isinstance(request.options, DeleteOptions) else ""
        gone = answer if answer is not None else before
        self._note(OwnWrite(verb="delete", kind=request.kind.text, key=key, uid="" if before is None else before.uid))
        if gone is None or uid not in ("", gone.uid):
            for view in self._written(request, request.name):
                view.lost_sight(key, "delete", uid="", version="")
            return
        self._deleted(gone.uid)
        for view in self._written(request, request.name):
            view.deleted(key, uid=gone.uid, version=gone.resource_version)

    def _deleted(self, uid: str) -> None:
        self._attribution.deleted(uid, *self.by)

    def _note(self, write: OwnWrite) -> None:
        if len(self.noted) < _MOST_NOTED:
            self.noted.append(write)
        else:
            self.dropped[:] = [sum(self.dropped) + 1]

    def _written(self, request: WriteRequest, name: str) -> builtins.list[CacheView]:
        views = self.views.bound[request.kind]
        return views.written(request.namespace, name)


@final
@names_calls("ctx.client")
class ReconcileClient(Verbs, msgspec.Struct, eq=False):
    """Client of one reconcile; a manager creates it.

    Methods that access one object use the namespace of the reconciled object by default. If that object is
    cluster-scoped, requests for namespaced kinds must specify a namespace, or they raise ``InvalidArgumentError``.
    Lists include all namespaces by default.

    The methods are those of ``Client`` and raise the same errors. A ``timeout`` in seconds applies to requests. Reads
    from a cache are immediate.
    """

    _way: Way
    _kinds: dict[int, BoundKind]
    _cached: CachedWay
    _not_awaited: NotAwaited
    _client: Client
    _live: Client | None = None

    def __repr__(self) -> str:
        controller, number, key = self._cached.by
        return f"<ReconcileClient of {controller} {key}, reconcile {number}>"

    @property
    def live(self) -> Client:
        """A client that always reads from the server, with the namespace and write checks of this reconcile."""
        if self._live is None:
            self._live = self._client._on_server(  # noqa: SLF001 - same
                self._cached.server.replaced(on_written=self._cached.wrote_live)
            )
        return self._live

    @property
    def writes(self) -> tuple[OwnWrite, ...]:
        """The first hundred successful writes of this reconcile, without dry runs."""
        return tuple(self._cached.noted)

    @property
    def writes_dropped(self) -> int:
        """The number of writes after the first hundred."""
        return sum(self._cached.dropped)

    def with_max_staleness(self, seconds: float | None) -> Self:
        """Return the same client with a limit to the age of cached reads.

        Args:
            seconds: Time in seconds within which the server must have confirmed a cache. Otherwise the client reads
                from the server. None accepts any age.
        """
        from copy import copy

        other = copy(self)
        way = other._way = other._cached = copy(self._cached)  # noqa: SLF001 - of the same class
        way.max_staleness = seconds
        return other

    @overload
    async def by_index(
        self, kind: TypedKind[T], index: str, value: str, *, namespace: str | None = None
    ) -> builtins.list[T]: ...
    @overload
    async def by_index(
        self, kind: str, index: str, value: str, *, namespace: str | None = None
    ) -> builtins.list[Resource]: ...
    async def by_index(self, kind: Kind, index: str, value: str, *, namespace: str | None = None) -> builtins.list[Any]:
        """Read the objects that a cache index contains under a value.

        ``index`` is the name in the ``Watch``. ``namespace`` selects a cache with only one namespace; it does not
        filter.

        Raises:
            InvalidArgumentError: If the program has no cache of the kind.
            UnknownIndexError: If the cache has no such index.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, None)
        views = self._cached.views.of(known.type)
        caches = [view for view in (views.find(namespace), *views.views) if view is not None]
        if not caches:
            raise InvalidArgumentError(f"{index!r} requires a cache of {known.text}. Watch the kind.", argument="index")
        cache = next((view for view in caches if view.has_index(index)), caches[0])
        if await self._cached.settle(cache, known, cache.namespace):
            found = cache.by_index(index, value)
        else:
            everything = await self.live.list_all(known.untyped, namespace=cache.namespace)
            found = [obj for obj in everything if value in cache.index_values(index, obj)]
        return found if known.decode is None else [*map(known.decode, found)]


def _still_there(answer: Resource) -> bool:
    """Return whether a deletion only marked the returned object for deletion."""
    if answer.deletion_timestamp is None:
        return False
    grace = answer["metadata"].get("deletionGracePeriodSeconds")
    return bool(answer.finalizers) or (grace is not None and grace > 0)
