"""The client of a reconcile: it reads from caches, writes to the server, and sees its own writes at once.

The verbs are those of every client; here are its own ways to read and to write, on which they stand. What a write
answers lies over the cache until the cache has caught up (``core/overlay.py``), and is remembered so that its echo can
be labelled (``core/attribution.py``). A write is refused when the reconcile was told to stop or leadership was lost.

A read asks the server when there is no cache of that kind and namespace, when it asks for more than the cache can tell
(a field selector, a version, a subresource), when the cache has not been confirmed within ``with_max_staleness``, and
when a write of this program to that object has an unknown outcome: it got no answer, or was cancelled on its way.
"""

from __future__ import annotations

import asyncio
import builtins
from dataclasses import replace
from typing import Any, Final, Self, TypeVar, Unpack, final, overload

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.keys import join_key
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource, decoder, typed, untyped
from deltaloop.api.resource_type import ResourceType, TypedKind
from deltaloop.api.selectors import LabelSelector
from deltaloop.api.status import InternalServerError, NotFoundError, ServerTimeoutError, ServiceUnavailableError
from deltaloop.client import Client, DeleteOptions, ResourceList, WriteCheck
from deltaloop.client.core.answers import is_status
from deltaloop.client.core.metadata_only import metadata_of_list
from deltaloop.client.errors import TransportError
from deltaloop.client.verbs.base_client import (
    EVERYTHING,
    WriteRequest,
    both_checks,
    not_found,
    refuse_namespace,
    selected,
)
from deltaloop.client.verbs.request_keywords import GetKeywords, Kind
from deltaloop.client.verbs.subresources import Verbs
from deltaloop.runtime.core.attribution import Attribution
from deltaloop.runtime.core.overlay import WriteKind
from deltaloop.runtime.core.own_writes import OwnWrite
from deltaloop.runtime.objects.cached_views import CacheView, Views
from deltaloop.runtime.reconcile.calls import NotAwaited, names_calls

T = TypeVar("T")

_MANY: Final = 20
"""From so many uncertain objects on, one list is cheaper than to read each."""
_MOST_NOTED: Final = 100
_UNKNOWN: Final = {"create": WriteKind.CREATE, "update": WriteKind.UPDATE, "delete": WriteKind.DELETE}
_ANSWERED_OTHERWISE: Final = ("binding", "eviction", "scale")
"""Subresources whose writes change the object, and are answered with another one."""


@final
@names_calls("ctx.client")
class ReconcileClient(Verbs):
    """The client of one reconcile; made by a manager.

    Verbs of one object use the namespace of the object to reconcile by default. If that has none, a request about a
    kind with namespaces must name one, or it raises ``InvalidArgumentError``. Lists are of all namespaces by default.

    Its verbs are those of ``Client``, and raise the same. A ``timeout`` is in seconds, and of the requests: a read that
    a cache answers takes no time.
    """

    _why_no_home = "the object to reconcile has none"

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
        vars(self).update(vars(client))  # the same connections, in the same manner
        if write_check is not None:
            self._write_check = both_checks(self._write_check, write_check)
        if namespace is not None:
            self._home = namespace
        self._client = client
        self._live_client: Client | None = None
        self._own_check = write_check
        self._views = views
        self._max_staleness: float | None = None
        self._attribution = attribution
        self._controller = controller
        self._number = number
        self._key = key
        self._noted: list[OwnWrite] = []
        self._dropped = [0]
        self._decoded: tuple[bytes, Resource] | None = None
        self.not_awaited: NotAwaited = {}

    @property
    def live(self) -> Client:
        """A client whose reads always ask the server; its namespace and its writes are those of this reconcile."""
        if self._live_client is None:
            checked = self._client if self._own_check is None else self._client.with_write_check(self._own_check)
            self._live_client = checked._with(  # noqa: SLF001 - of the same family
                _home=self._home, _why_no_home=self._why_no_home, _on_written=self._wrote_live
            )
        return self._live_client

    @property
    def writes(self) -> tuple[OwnWrite, ...]:
        """What this reconcile has written so far: the first hundred writes that were carried out, dry runs left out."""
        return tuple(self._noted)

    @property
    def writes_dropped(self) -> int:
        """How many writes there were beyond those."""
        return self._dropped[0]

    def with_max_staleness(self, seconds: float | None) -> Self:
        """Return the same client with a limit to the age of what it reads from caches.

        Args:
            seconds: Within which the server must have confirmed a cache, or it is asked; None takes what a cache has.
        """
        return self._with(_max_staleness=seconds)

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
        known = await self._known(kind, None)
        caches = [
            view for view in [self._views.find(known, namespace), *self._views.of_kind(known)] if view is not None
        ]
        if not caches:
            raise InvalidArgumentError(f"there is no cache of {known}, so it has no index {index!r}: watch the kind")
        cache = next((view for view in caches if view.has_index(index)), caches[0])
        if await self._settle(cache, known, cache.namespace):
            found = cache.by_index(index, value)
        else:
            everything = await self.live.list_all(untyped(known), namespace=cache.namespace)
            found = [obj for obj in everything if value in cache.index_values(index, obj)]
        return [*map(decoder(known), found)]

    # -- reads

    async def _read(
        self,
        known: ResourceType[Any],
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Resource:
        place = self._namespace(known, namespace)
        view = None if subresource else self._view(known, place, name)
        if view is None:
            return await super()._read(known, name, namespace=namespace, subresource=subresource, timeout=timeout)
        found = await self._seen(view, known, place, name, timeout)
        if found is None:
            raise not_found(known, name)
        return found

    async def _find(self, known: ResourceType[Any], name: str, **keywords: Unpack[GetKeywords]) -> Resource | None:
        place = self._namespace(known, keywords.get("namespace"))
        view = None if keywords.get("subresource") else self._view(known, place, name)
        if view is None:
            return await super()._find(known, name, **keywords)
        # Without an error that is made and caught again: a child that is not there yet is what reconciles begin with.
        return await self._seen(view, known, place, name, keywords.get("timeout"))

    def _view(self, known: ResourceType[Any], place: str | None, name: str) -> CacheView | None:
        """Return the view to read an object from; None if the server is to be asked."""
        view = self._views.find(known, place)
        if view is None or view.is_fresh(self._max_staleness) or view.is_uncertain(join_key(place, name)):
            return view
        return None

    async def _seen(
        self, view: CacheView, known: ResourceType[Any], place: str | None, name: str, timeout: float | None
    ) -> Resource | None:
        """Return an object as a view has it, or as the server has it if the view cannot know."""
        key = join_key(place, name)
        if not view.is_uncertain(key):
            return view.get(key)
        found = await self._live(known, name, place, timeout)
        return view.settle(key, found)

    async def _list(
        self,
        known: ResourceType[Any],
        *,
        namespace: str | None = None,
        options: ListOptions = EVERYTHING,
        selector: str | LabelSelector | None = None,
        timeout: float | None = None,
        metadata_only: bool = False,
    ) -> ResourceList[Any]:
        if namespace:
            refuse_namespace(known, namespace)
        options = selected(options, selector)
        by_label = options.label_selector
        # A cache answers a list of any length at once, as the server does from its own one.
        is_cached = options is EVERYTHING or options == ListOptions(label_selector=by_label, limit=options.limit)
        view = await self._settled(known, namespace, timeout) if is_cached else None
        if view is None:
            return await super()._list(
                known, namespace=namespace, options=options, timeout=timeout, metadata_only=metadata_only
            )
        found = view.list(namespace, LabelSelector.parse(by_label) if by_label else None)
        version = view.informer.resource_version
        if metadata_only:
            return metadata_of_list(ResourceList(tuple(found), version))
        return ResourceList(tuple(map(decoder(known), found)), version)

    async def _settled(
        self, known: ResourceType[Any], namespace: str | None, timeout: float | None = None
    ) -> CacheView | None:
        """Return the view to list from, once nothing in it is uncertain; None to ask the server."""
        view = self._views.find(known, namespace)
        return view if view is not None and await self._settle(view, known, namespace, timeout) else None

    async def _settle(
        self, view: CacheView, known: ResourceType[Any], namespace: str | None, timeout: float | None = None
    ) -> bool:
        """Tell whether a view can be listed from, once nothing in it is uncertain."""
        if not view.is_fresh(self._max_staleness) or view.has_unknown_names(namespace):
            return False
        keys = view.uncertain(namespace)
        if len(keys) >= _MANY:
            return False
        for key in keys:
            place, _, name = key.rpartition("/")
            view.settle(key, await self._live(known, name, place, timeout))
        return True

    async def _live(
        self, known: ResourceType[Any], name: str, namespace: str | None, timeout: float | None
    ) -> Resource | None:
        try:
            return await super()._read(known, name, namespace=namespace, timeout=timeout)
        except NotFoundError:
            return None

    # -- writes

    async def _write(self, request: WriteRequest) -> bytes:
        key = join_key(request.namespace, request.name)
        before = self._present(request, key)
        uid = "" if before is None else before.uid
        if request.verb == "delete":
            # What is deleted is the object that this program has seen, and no successor.
            options = request.options if isinstance(request.options, DeleteOptions) else DeleteOptions()
            uid = options.uid or uid or self._uid_of_gone(request, key)
            request = msgspec.structs.replace(request, options=replace(options, uid=uid))
        if request.verb == "apply" and self._will_be_made(request, key):
            self._check_access("create", request.resource_type, request.namespace)
        try:
            body = await super()._write(request)
        except BaseException as error:
            if may_have_been_carried_out(error) and not request.dry_run:
                version = before.resource_version if before is not None and before.uid == uid else ""
                self._lost_sight(request, key, uid, version)
            raise
        if not request.dry_run:
            self._carried_out(request, key, before, body)
        return body

    def _wrote_live(self, request: WriteRequest, body: bytes) -> None:
        """Take the response to a write of ``live``."""
        if not request.dry_run:
            key = join_key(request.namespace, request.name)
            self._carried_out(request, key, self._present(request, key), body)
            self._decoded = None

    def _answered(self, known: ResourceType[T], body: bytes) -> T:
        decoded, self._decoded = self._decoded, None
        return (
            typed(known, decoded[1]) if decoded is not None and decoded[0] is body else super()._answered(known, body)
        )

    def _present(self, request: WriteRequest, key: str) -> Resource | None:
        """Return the object of a write as this program knows it before."""
        view = self._views.find(request.resource_type, request.namespace) if request.name else None
        return None if view is None or view.is_uncertain(key) else view.get(key)

    def _uid_of_gone(self, request: WriteRequest, key: str) -> str:
        """Return the uid of what this program knows to be gone, while its cache may not know of another one."""
        view = self._views.find(request.resource_type, request.namespace) if request.name else None
        return "" if view is None or view.is_uncertain(key) else view.overlay.uid_of_gone(key)

    def _will_be_made(self, request: WriteRequest, key: str) -> bool:
        """Tell whether an apply is known to create its object, which it needs to be allowed."""
        view = None if request.subresource else self._views.find(request.resource_type, request.namespace)
        return view is not None and not view.is_uncertain(key) and view.get(key) is None

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
        for view in self._views_of(request):
            if request.verb == "delete_collection":
                for obj in view.list(request.namespace, None):
                    view.lost_sight(obj.key, WriteKind.DELETE, uid=obj.uid, version=obj.resource_version)
            elif request.generate_name:
                view.lost_sight_of_generated(join_key(request.namespace, request.generate_name))
            elif request.name:
                version = {WriteKind.UPDATE: request.version, WriteKind.CREATE: ""}.get(kind, seen)
                view.lost_sight(key, kind, uid=uid, version=version)

    def _carried_out(self, request: WriteRequest, key: str, before: Resource | None, body: bytes) -> None:
        """Remember what a write has done."""
        known = untyped(request.resource_type)
        if request.verb in ("create", "update", "patch", "apply") and request.subresource in (None, "", "status"):
            stored = Resource.from_json(body, known)
            self._decoded = (body, stored)
            self._stored(request, None if request.verb == "create" else before, stored)
            return
        if request.verb == "delete_collection":
            from deltaloop.client.core.list_decoding import decode_list

            for obj in () if is_status(body) else decode_list(known, body):
                self._note(request, "delete", obj.key, obj.uid)
                self._attribution.deleted(obj.uid, controller=self._controller, number=self._number, key=self._key)
                for view in self._views_of(request, obj.name):
                    view.lost_sight(obj.key, WriteKind.DELETE, uid=obj.uid, version=obj.resource_version)
            return
        answer = None if is_status(body) else Resource.from_json(body, known)
        if request.verb != "delete":
            if request.subresource in _ANSWERED_OTHERWISE and before is not None:
                self._changed(request, before, "" if answer is None else answer.resource_version)
        elif answer is not None and _still_there(answer):
            self._stored(request, before, answer)
        else:
            self._gone(request, key, before, answer)

    def _changed(self, request: WriteRequest, before: Resource, version: str) -> None:
        """Have an object read from the server, unless it has still the same version."""
        if version == before.resource_version:
            return
        if version:
            self._made(request, before.uid, version, before)
        kind = WriteKind.DELETE if request.subresource == "eviction" else WriteKind.UPDATE
        for view in self._views_of(request):
            view.lost_sight(before.key, kind, uid=before.uid, version=before.resource_version)

    def _gone(self, request: WriteRequest, key: str, before: Resource | None, answer: Resource | None) -> None:
        uid = request.options.uid if isinstance(request.options, DeleteOptions) else ""
        gone = answer if answer is not None else before
        self._note(request, "delete", key, "" if before is None else before.uid)
        if gone is None or uid not in ("", gone.uid):
            for view in self._views_of(request):
                view.lost_sight(key, WriteKind.DELETE, uid="", version="")
            return
        self._attribution.deleted(gone.uid, controller=self._controller, number=self._number, key=self._key)
        for view in self._views_of(request):
            view.deleted(key, uid=gone.uid, version=gone.resource_version)

    def _stored(self, request: WriteRequest, before: Resource | None, stored: Resource) -> None:
        uid, version = stored.uid, stored.resource_version
        self._made(request, uid, version, before)
        is_gone = stored.deletion_timestamp is not None and not _still_there(stored)  # its last finalizer was dropped
        for view in self._views_of(request, stored.name):
            if is_gone:
                view.deleted(stored.key, uid=uid, version=version)
            else:
                view.wrote(stored)
        self._note(request, request.verb, stored.key, uid, version=version, before=before, after=stored)

    def _made(self, request: WriteRequest, uid: str, version: str, before: Resource | None) -> None:
        """Remember that this reconcile gave an object a version."""
        base = request.version or (None if before is None else before.resource_version)
        if request.verb == "create" and not request.subresource:
            base = ""
        self._attribution.wrote(
            uid, version, controller=self._controller, number=self._number, key=self._key, base=base
        )

    def _note(
        self,
        request: WriteRequest,
        verb: str,
        key: str,
        uid: str,
        *,
        version: str = "",
        before: Resource | None = None,
        after: Resource | None = None,
    ) -> None:
        if len(self._noted) >= _MOST_NOTED:
            self._dropped[0] += 1
            return
        kind, part = str(request.resource_type), "" if verb == "delete" else request.subresource or ""
        self._noted.append(
            OwnWrite(
                verb=verb, kind=kind, key=key, uid=uid, subresource=part, version=version, before=before, after=after
            )
        )

    def _views_of(self, request: WriteRequest, name: str | None = None) -> builtins.list[CacheView]:
        return self._views.written(request.resource_type, request.namespace, name or request.name or "")


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
