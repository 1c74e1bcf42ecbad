"""The client of a reconcile: it reads from caches, writes to the server, and sees its own writes at once.

The verbs are those of every client; here is the way on which they stand (``client/verbs/server.py``). What a write
answers lies over the cache until the cache has caught up (``core/overlay.py``), and is remembered so that its echo can
be labelled (``core/attribution.py``). A write is refused when the reconcile was told to stop or leadership was lost.

A read asks the server when there is no cache of that kind and namespace, when it asks for more than the cache can tell
(a field selector, a version, a subresource), when the cache has not been confirmed within ``with_max_staleness``, and
when a write of this program to that object has an unknown outcome: it got no answer, or was cancelled on its way.
"""

from __future__ import annotations

import asyncio
import builtins
import copy
from typing import Any, Final, Self, TypeVar, final, overload

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.keys import join_key
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource, decoder
from deltaloop.api.resource_type import TypedKind
from deltaloop.api.selectors import LabelSelector
from deltaloop.api.status import InternalServerError, ServerTimeoutError, ServiceUnavailableError
from deltaloop.client import Client, DeleteOptions, ResourceList, WriteCheck
from deltaloop.client.core.metadata_only import metadata_of_list
from deltaloop.client.discovery import BoundKind
from deltaloop.client.errors import TransportError
from deltaloop.client.verbs.request_keywords import Kind
from deltaloop.client.verbs.server import (
    EVERYTHING,
    Server,
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
from deltaloop.runtime.objects.cached_views import UNSURE, CacheView, Views
from deltaloop.runtime.reconcile.calls import NotAwaited, names_calls

T = TypeVar("T")

_MANY: Final = 20
"""From so many uncertain objects on, one list is cheaper than to read each."""
_MOST_NOTED: Final = 100
_NO_HOME: Final = "the object to reconcile has none"
_UNKNOWN: Final = {"create": WriteKind.CREATE, "update": WriteKind.UPDATE, "delete": WriteKind.DELETE}
_ANSWERED_OTHERWISE: Final = ("binding", "eviction", "scale")
"""Subresources whose writes change the object, and are answered with another one."""


@final
class CachedWay:
    """How the verbs of one reconcile read and write.

    Attributes:
        home: Default namespace for methods that access one object.
        kinds: The kinds that verbs have met.
        why_no_home: Why there is none, if there is none.
        max_staleness: Seconds within which the server must have confirmed a cache; None takes what a cache has.
        noted: The first hundred writes that were carried out.
        dropped: How many writes there were beyond those, as the only item.
    """

    def __init__(
        self,
        server: Server,
        views: Views,
        attribution: Attribution,
        by: tuple[str, int, str],
        *,
        namespace: str | None,
        write_check: WriteCheck | None,
    ) -> None:
        """Begin with nothing written, for the reconcile that ``by`` names: controller, number and key."""
        self._base = server
        self.kinds: dict[int, BoundKind] = server.discovery.kinds
        self._views = views
        self._attribution = attribution
        self._by = by
        self._write_check = write_check
        self._server: Server | None = None
        self.home: str = server.home if namespace is None else namespace
        self.why_no_home: str = _NO_HOME
        self.max_staleness: float | None = None
        self.noted: list[OwnWrite] = []
        self.dropped: builtins.list[int] = [0]

    @property
    def server(self) -> Server:
        """The server behind the caches, asked in the manner of this reconcile."""
        if self._server is None:
            check = self._base.write_check
            if self._write_check is not None:
                check = both_checks(check, self._write_check)
            self._server = self._base.replaced(home=self.home, why_no_home=self.why_no_home, write_check=check)
        return self._server

    # -- reads

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
        """Read one object, as ``Way.read``."""
        place = namespace or self.home if known.namespaced else namespace
        views = self._views.bound[known]
        if subresource is None and self.max_staleness is None and bool(place) is known.namespaced:
            view = views.whole or views.find(place)
            found = UNSURE if view is None else view.read(f"{place}/{name}" if place else name)
        else:
            found = UNSURE
        if found is UNSURE:  # seldom
            place = place_of(self, known, namespace)
            view, key = None if subresource else views.find(place), join_key(place, name)
            if view is not None and view.is_uncertain(key):
                found = view.settle(key, await self._ask(known, name, place, timeout))
            elif view is not None and view.is_fresh(self.max_staleness):
                found = view.get(key)
            else:
                return await self.server.read(
                    known, name, must_exist=must_exist, namespace=namespace, subresource=subresource, timeout=timeout
                )
        # Without an error that is made and caught again: a child that is not there yet is what reconciles begin with.
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
        """Read objects, as ``Way.list``."""
        if namespace:
            refuse_namespace(known.type, namespace)
        by_label = options.label_selector
        view = self._views.of(known.type).find(namespace)
        # A cache answers a list of any length at once, as the server does from its own one.
        is_cached = options is EVERYTHING or options == ListOptions(label_selector=by_label, limit=options.limit)
        if view is None or not is_cached or not await self.settle(view, known, namespace, timeout):
            return await self.server.list(
                known, namespace=namespace, options=options, timeout=timeout, metadata_only=metadata_only
            )
        found = view.list(namespace, LabelSelector.parse(by_label) if by_label else None)
        version = view.informer.resource_version
        if metadata_only:
            return metadata_of_list(ResourceList(tuple(found), version))
        return ResourceList(tuple(map(decoder(known.type), found)), version)

    async def settle(
        self, view: CacheView, known: BoundKind, namespace: str | None, timeout: float | None = None
    ) -> bool:
        """Tell whether a view can be listed from, once nothing in it is uncertain."""
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

    async def write(self, request: WriteRequest) -> Any:
        """Write, as ``Way.write``, and remember what was written."""
        known, verb, name, namespace = request.kind, request.verb, request.name, request.namespace
        key = f"{namespace}/{name}" if namespace else name
        views = self._views.bound[known]
        view = (views.whole or views.find(namespace)) if name else None
        before = None if view is None else view.newest(key)
        uid = "" if before is None else before.uid
        if verb == "delete":
            # What is deleted is the object that this program has seen, and no successor.
            options = request.options if isinstance(request.options, DeleteOptions) else DeleteOptions()
            gone = "" if view is None or view.is_uncertain(key) else view.overlay.uid_of_gone(key)
            uid = options.uid or uid or gone
            request = msgspec.structs.replace(request, options=options.replace(uid=uid))
        elif verb == "apply" and before is None and view is not None and not request.subresource:
            check = None if view.is_uncertain(key) else self.server.access_check
            if check is not None:
                check("create", known.type, namespace, "")  # it is known to make its object
        is_dry = request.options is not None and request.options.dry_run
        try:
            answer = await (self._server or self.server).write(request)
        except BaseException as error:
            if may_have_been_carried_out(error) and not is_dry:
                version = before.resource_version if before is not None and before.uid == uid else ""
                self._lost_sight(request, key, uid, version)
            raise
        if not is_dry:
            self._carried_out(request, key, before, answer)
        return answer

    async def bind(self, kind: Kind) -> BoundKind:
        """Return a kind as verbs know it."""
        return self.kinds.get(id(kind)) or await self._base.discovery.bind(kind)

    def newest(self, known: BoundKind, namespace: str | None, key: str) -> Resource | None:
        """Return the newest state of an object that is known, as the server has it; None if the server has to say."""
        views = self._views.bound[known]
        view = views.whole or views.find(namespace)
        if view is None or not view.is_whole:
            return None
        found = view.read(key)
        return view.newest_whole(key) if found is UNSURE else found

    def wrote_live(self, request: WriteRequest, answer: Any) -> None:
        """Take the answer to a write of ``live``."""
        if request.options is None or not request.options.dry_run:
            key = join_key(request.namespace, request.name)
            view = self._views.of(request.kind.type).find(request.namespace) if request.name else None
            self._carried_out(request, key, None if view is None else view.newest(key), answer)

    def _lost_sight(self, request: WriteRequest, key: str, uid: str, seen: str) -> None:
        """Have what a write without an answer was for read from the server.

        Args:
            request: The write.
            key: Of the object.
            uid: Of the object, if it is known.
            seen: The version in which the program has seen it; empty if it has not.
        """
        kind = _UNKNOWN.get(request.verb, WriteKind.PATCH)
        if (request.subresource and kind is WriteKind.CREATE) or (kind is WriteKind.UPDATE and not request.version):
            kind = WriteKind.PATCH
        for view in self._written(request, request.name):
            if request.verb == "delete_collection":
                for obj in view.list(request.namespace, None):
                    view.lost_sight(obj.key, WriteKind.DELETE, uid=obj.uid, version=obj.resource_version)
            elif request.generate_name:
                view.lost_sight_of_generated(join_key(request.namespace, request.generate_name))
            elif request.name:
                version = {WriteKind.UPDATE: request.version, WriteKind.CREATE: ""}.get(kind, seen)
                view.lost_sight(key, kind, uid=uid, version=version)

    def _carried_out(self, request: WriteRequest, key: str, before: Resource | None, answer: Any) -> None:
        """Remember what a write has done."""
        verb, part = request.verb, request.subresource
        if verb == "delete_collection":
            for obj in answer or ():
                self._note(OwnWrite(verb="delete", kind=request.kind.text, key=obj.key, uid=obj.uid))
                self._deleted(obj.uid)
                for view in self._written(request, obj.name):
                    view.lost_sight(obj.key, WriteKind.DELETE, uid=obj.uid, version=obj.resource_version)
        elif verb == "delete":
            if answer is not None and _still_there(answer):
                self._stored(request, before, answer)
            else:
                self._gone(request, key, before, answer)
        elif not part or part == "status":
            self._stored(request, None if verb == "create" else before, answer)
        elif part in _ANSWERED_OTHERWISE and before is not None:
            self._changed(request, before, "" if answer is None else answer.resource_version)

    def _changed(self, request: WriteRequest, before: Resource, version: str) -> None:
        """Have an object read from the server, unless it has still the same version."""
        if version == before.resource_version:
            return
        if version:
            self._made(request, before.uid, version, before)
        kind = WriteKind.DELETE if request.subresource == "eviction" else WriteKind.UPDATE
        for view in self._written(request, request.name):
            view.lost_sight(before.key, kind, uid=before.uid, version=before.resource_version)

    def _gone(self, request: WriteRequest, key: str, before: Resource | None, answer: Resource | None) -> None:
        uid = request.options.uid if isinstance(request.options, DeleteOptions) else ""
        gone = answer if answer is not None else before
        self._note(OwnWrite(verb="delete", kind=request.kind.text, key=key, uid="" if before is None else before.uid))
        if gone is None or uid not in ("", gone.uid):
            for view in self._written(request, request.name):
                view.lost_sight(key, WriteKind.DELETE, uid="", version="")
            return
        self._deleted(gone.uid)
        for view in self._written(request, request.name):
            view.deleted(key, uid=gone.uid, version=gone.resource_version)

    def _stored(self, request: WriteRequest, before: Resource | None, stored: Resource) -> None:
        known, verb, version = request.kind, request.verb, stored.resource_version
        self._made(request, stored.uid, version, before)
        is_gone = stored.deletion_timestamp is not None and not _still_there(stored)  # its last finalizer was dropped
        views = self._views.bound[known]
        place, name = request.namespace, stored.name or request.name
        for view in views.written(place, name) if views.tracked else views.views:
            if view.namespace is None or view.namespace == place:
                if is_gone:
                    view.deleted(stored.key, uid=stored.uid, version=version)
                else:
                    view.wrote(stored)
        self._note(
            OwnWrite(
                verb=verb,
                kind=known.text,
                key=stored.key,
                uid=stored.uid,
                subresource="" if verb == "delete" else request.subresource or "",
                version=version,
                before=before,
                after=stored,
            )
        )

    def _made(self, request: WriteRequest, uid: str, version: str, before: Resource | None) -> None:
        """Remember that this reconcile gave an object a version."""
        base = request.version or (None if before is None else before.resource_version)
        if request.verb == "create" and not request.subresource:
            base = ""
        controller, number, key = self._by
        self._attribution.wrote(uid, version, controller=controller, number=number, key=key, base=base)

    def _deleted(self, uid: str) -> None:
        controller, number, key = self._by
        self._attribution.deleted(uid, controller=controller, number=number, key=key)

    def _note(self, write: OwnWrite) -> None:
        if len(self.noted) < _MOST_NOTED:
            self.noted.append(write)
        else:
            self.dropped[0] += 1

    def _written(self, request: WriteRequest, name: str) -> builtins.list[CacheView]:
        views = self._views.bound[request.kind]
        return views.written(request.namespace, name)


@final
@names_calls("ctx.client")
class ReconcileClient(Verbs):
    """The client of one reconcile; made by a manager.

    Verbs of one object use the namespace of the object to reconcile by default. If that has none, a request about a
    kind with namespaces must name one, or it raises ``InvalidArgumentError``. Lists are of all namespaces by default.

    Its verbs are those of ``Client``, and raise the same. A ``timeout`` is in seconds, and of the requests: a read that
    a cache answers takes no time.
    """

    def __init__(
        self,
        client: Client,
        views: Views,
        *,
        attribution: Attribution,
        controller: str,
        number: int,
        key: str = "",
        namespace: str | None = None,
        write_check: WriteCheck | None = None,
    ) -> None:
        """Read from ``views`` and through ``client``, and write through it, for one reconcile of a controller.

        Args:
            client: Whom it asks and writes through.
            views: The caches of the program.
            attribution: Who wrote what.
            controller: Name of the controller.
            number: The reconcile's number.
            key: Key that is reconciled.
            namespace: Namespace of verbs that name none; empty if they must name one, None for that of ``client``.
            write_check: Asked before each write, after the checks of ``client``.
        """
        server = client._server  # noqa: SLF001 - of the same family
        self.way: CachedWay = CachedWay(
            server, views, attribution, (controller, number, key), namespace=namespace, write_check=write_check
        )
        self._way = self.way
        self._kinds = server.discovery.kinds
        self._client = client
        self._views = views
        self._live: Client | None = None
        self.not_awaited: NotAwaited = {}

    @property
    def live(self) -> Client:
        """A client whose reads always ask the server; its namespace and its writes are those of this reconcile."""
        if self._live is None:
            self._live = self._client._on_server(  # noqa: SLF001 - same
                self.way.server.replaced(on_written=self.way.wrote_live)
            )
        return self._live

    @property
    def writes(self) -> tuple[OwnWrite, ...]:
        """What this reconcile has written so far: the first hundred writes that were carried out, dry runs left out."""
        return tuple(self.way.noted)

    @property
    def writes_dropped(self) -> int:
        """How many writes there were beyond those."""
        return self.way.dropped[0]

    def with_max_staleness(self, seconds: float | None) -> Self:
        """Return the same client with a limit to the age of what it reads from caches.

        Args:
            seconds: Within which the server must have confirmed a cache, or it is asked; None takes what a cache has.
        """
        other = copy.copy(self)
        other._way = other.way = copy.copy(self.way)  # noqa: SLF001 - of the same class
        other.way.max_staleness = seconds
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
        """Read the objects that an index of the cache files under a value.

        Args:
            kind: What kind of objects.
            index: The index's name, as given to the ``Watch``.
            value: The value that the index files objects under.
            namespace: The cache's only namespace, if it holds one; no filter.

        Raises:
            InvalidArgumentError: If the program has no cache of that kind.
            UnknownIndexError: If the cache has no such index.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, None)
        views = self._views.of(known.type)
        caches = [view for view in (views.find(namespace), *views.views) if view is not None]
        if not caches:
            raise InvalidArgumentError(
                f"there is no cache of {known.text}, so it has no index {index!r}: watch the kind"
            )
        cache = next((view for view in caches if view.has_index(index)), caches[0])
        if await self.way.settle(cache, known, cache.namespace):
            found = cache.by_index(index, value)
        else:
            everything = await self.live.list_all(known.untyped, namespace=cache.namespace)
            found = [obj for obj in everything if value in cache.index_values(index, obj)]
        return found if known.decode is None else [*map(known.decode, found)]


def may_have_been_carried_out(error: BaseException) -> bool:
    """Tell whether a write that failed like this may have changed the server all the same."""
    if isinstance(error, TransportError):
        return error.sent
    return isinstance(
        error, asyncio.CancelledError | InternalServerError | ServiceUnavailableError | ServerTimeoutError
    )


def _still_there(answer: Resource) -> bool:
    """Tell whether an object that a deletion answered with was only marked for deletion."""
    if answer.deletion_timestamp is None:
        return False
    grace = answer["metadata"].get("deletionGracePeriodSeconds")
    return bool(answer.finalizers) or (grace is not None and grace > 0)
