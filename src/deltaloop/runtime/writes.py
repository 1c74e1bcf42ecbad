"""The writing half of a reconciler's client: it writes to the server, and sees its own writes at once.

What a write answers lies over the cache until the cache has caught up (``core/overlay.py``), and is remembered so that
its echo can be labelled (``core/attribution.py``). A write is refused when the reconcile was told to stop or leadership
was lost; a write that got no answer makes its object one that is read from the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar, Unpack, final, overload

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.keys import join_key
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import (
    InternalServerError,
    ServerTimeoutError,
    ServiceUnavailableError,
)
from deltaloop.cache.lister import decoder
from deltaloop.client import Client, DeleteOptions, PatchType, WriteOptions
from deltaloop.client.core.object_encoding import encode_object
from deltaloop.client.errors import TransportError
from deltaloop.client.request_keywords import ApplyKeywords, SubresourceWriteKeywords, WriteKeywords
from deltaloop.runtime.core.attribution import Attribution
from deltaloop.runtime.core.overlay import WriteKind
from deltaloop.runtime.core.own_writes import OwnWrite
from deltaloop.runtime.reads import CachedReads
from deltaloop.runtime.views import CacheView, Views, untyped

T = TypeVar("T")

_MOST_NOTED: Final = 100


def may_have_been_carried_out(error: BaseException) -> bool:
    """Tell whether a write that failed like this may have changed the server all the same."""
    if isinstance(error, TransportError):
        return error.sent
    return isinstance(
        error, asyncio.CancelledError | InternalServerError | ServiceUnavailableError | ServerTimeoutError
    )


class RememberedWrites(CachedReads):
    """Writes objects, and remembers what was written. All verbs are those of ``Client``, and raise the same.

    ``timeout`` is in seconds, for a whole call with its repeats; None is the client's own limit (30 s).
    """

    def __init__(self, client: Client, views: Views, *, attribution: Attribution, controller: str, number: int) -> None:
        """Write through ``client``, for one reconcile of a controller."""
        super().__init__(client, views)
        self._attribution = attribution
        self._controller = controller
        self._number = number
        self._made: list[OwnWrite] = []
        self._made_dropped = 0

    @property
    def writes(self) -> tuple[OwnWrite, ...]:
        """What this reconcile has written so far: the first hundred writes that were carried out, dry runs left out."""
        return tuple(self._made)

    @property
    def writes_dropped(self) -> int:
        """How many writes there were beyond those."""
        return self._made_dropped

    @overload
    async def create(self, rt: ResourceType[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def create(self, rt: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def create(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Create an object and return it as stored."""
        known = await self._known(rt)
        outgoing = encode_object(known, obj)
        place = self._place(known, namespace or outgoing.namespace)
        generated = "" if outgoing.name else _generate_name(outgoing.body)
        with self._watching(known, outgoing.name, place, WriteKind.CREATE, options, generated=generated):
            stored = await self._client.create(untyped(known), obj, namespace=place, options=options, timeout=timeout)
        return self._stored(known, stored, options, verb="create")

    @overload
    async def update(self, rt: ResourceType[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def update(self, rt: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def update(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Replace an object and return it as stored."""
        return await self._replace(rt, obj, self._client.update, namespace, options, timeout)

    @overload
    async def update_status(self, rt: ResourceType[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def update_status(self, rt: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def update_status(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Replace the ``status`` of an object and return the object as stored."""
        send = self._client.update_status
        return await self._replace(rt, obj, send, namespace, options, timeout, subresource="status")

    @overload
    async def patch(
        self,
        rt: ResourceType[T],
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: PatchType = ...,
        **keywords: Unpack[SubresourceWriteKeywords],
    ) -> T: ...
    @overload
    async def patch(
        self,
        rt: str,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: PatchType = ...,
        **keywords: Unpack[SubresourceWriteKeywords],
    ) -> Resource: ...
    async def patch(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: PatchType = PatchType.MERGE,  # noqa: A002 - the API's word
        namespace: str | None = None,
        subresource: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Change an object and return it as stored; ``apply`` is the verb for server-side apply.

        Raises:
            InvalidArgumentError: The type is ``PatchType.APPLY``: a reconciler applies by ``apply``.
        """
        known = await self._known(rt)
        if type is PatchType.APPLY:
            raise InvalidArgumentError("a reconciler applies by `apply`, not by a patch of that type")
        place = self._place(known, namespace)
        with self._watching(known, name, place, WriteKind.PATCH, options) as before:
            stored = await self._client.patch(
                untyped(known),
                name,
                patch,
                type=type,
                namespace=place,
                subresource=subresource,
                options=options,
                timeout=timeout,
            )
        return self._stored(known, stored, options, verb="patch", before=before, subresource=subresource)

    @overload
    async def apply(self, rt: ResourceType[T], obj: object, **keywords: Unpack[ApplyKeywords]) -> T: ...
    @overload
    async def apply(self, rt: str, obj: object, **keywords: Unpack[ApplyKeywords]) -> Resource: ...
    async def apply(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        force: bool = False,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Server-side apply: say which fields this controller wants to have; see ``Client.apply``."""
        known = await self._known(rt)
        outgoing = encode_object(known, obj)
        place = self._place(known, namespace or outgoing.namespace)
        with self._watching(known, outgoing.name, place, WriteKind.PATCH, options) as before:
            stored = await self._client.apply(
                untyped(known),
                obj,
                namespace=place,
                subresource=subresource,
                force=force,
                options=options,
                timeout=timeout,
            )
        return self._stored(known, stored, options, verb="apply", before=before, subresource=subresource)

    async def delete(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        *,
        namespace: str | None = None,
        options: DeleteOptions | None = None,
        timeout: float | None = None,
    ) -> None:
        """Delete an object, or mark it for deletion if finalizers or a grace period hold it.

        What is deleted is the object that this program has seen: its uid goes along as a precondition, unless
        ``options`` name one or the program has seen none.

        Raises:
            NotFoundError: If there is none of that name.
            ConflictError: If a precondition does not hold; with the uid: another object has taken the name.
        """
        known = await self._known(rt)
        place = self._place(known, namespace)
        key = join_key(place, name)
        options = options or DeleteOptions()
        before = self._present(known, key, place)
        if not options.uid and before is not None:
            options = replace(options, uid=before.uid)
        with self._watching(known, name, place, WriteKind.DELETE, None, uid=options.uid, dry_run=options.dry_run):
            answer = await self._client.delete(untyped(known), name, namespace=place, options=options, timeout=timeout)
        if options.dry_run:
            return
        if answer is not None and _still_there(answer):
            self._stored(known, answer, None, verb="delete", before=before)
            return
        self._note(OwnWrite(verb="delete", kind=str(known), key=key, uid="" if before is None else before.uid))
        gone = answer if answer is not None else before
        if gone is None or options.uid not in ("", gone.uid):
            for view in self._views_of(known, place):
                view.lost_sight(key, WriteKind.DELETE, uid="", version="")
            return
        self._attribution.deleted(gone.uid, controller=self._controller, number=self._number)
        for view in self._views_of(known, place):
            view.deleted(key, uid=gone.uid, version=gone.resource_version)

    # -- how

    async def _replace(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        send: Callable[..., Any],
        namespace: str | None,
        options: WriteOptions | None,
        timeout: float | None,
        *,
        subresource: str | None = None,
    ) -> Any:
        known = await self._known(rt)
        outgoing = encode_object(known, obj)
        place = self._place(known, namespace or outgoing.namespace)
        version = Resource.from_json(outgoing.body, known).resource_version
        kind = WriteKind.UPDATE if version else WriteKind.PATCH
        with self._watching(known, outgoing.name, place, kind, options, version=version) as before:
            stored = await send(untyped(known), obj, namespace=place, options=options, timeout=timeout)
        return self._stored(known, stored, options, verb="update", before=before, subresource=subresource)

    def _stored(
        self,
        known: ResourceType[T],
        stored: Resource,
        options: WriteOptions | None,
        *,
        verb: str,
        before: Resource | None = None,
        subresource: str | None = None,
    ) -> T:
        """Remember what a write answered, and return it as the caller's type."""
        is_object = subresource in (None, "", "status")  # others, such as scale, answer with something else
        if is_object and not (options is not None and options.dry_run):
            self._attribution.wrote(
                stored.uid, stored.resource_version, controller=self._controller, number=self._number
            )
            for view in self._views_of(known, stored.namespace):
                view.wrote(stored)
            self._note(
                OwnWrite(
                    verb=verb,
                    kind=str(known),
                    key=stored.key,
                    uid=stored.uid,
                    subresource=subresource or "",
                    version=stored.resource_version,
                    before=before,
                    after=stored,
                )
            )
        return decoder(known)(stored)

    def _note(self, write: OwnWrite) -> None:
        if len(self._made) < _MOST_NOTED:
            self._made.append(write)
        else:
            self._made_dropped += 1

    def _views_of(self, known: ResourceType[Any], namespace: str | None) -> list[CacheView]:
        return [view for view in self._views.of_kind(known) if view.covers(namespace)]

    def _present(self, known: ResourceType[Any], key: str, namespace: str | None) -> Resource | None:
        view = self._views.find(known, namespace)
        return None if view is None or view.is_uncertain(key) else view.get(key)

    def _watching(
        self,
        known: ResourceType[Any],
        name: str,
        namespace: str | None,
        kind: WriteKind,
        options: WriteOptions | None,
        *,
        uid: str = "",
        version: str = "",
        dry_run: bool = False,
        generated: str = "",
    ) -> _Watching:
        """Watch over a write: if it ends without a clear answer, its object has to be read from the server.

        ``uid`` and ``version`` are those that the write asks for.
        """
        key = join_key(namespace, name)
        dry_run = dry_run or (options is not None and options.dry_run)
        views = [] if dry_run or not (name or generated) else self._views_of(known, namespace)
        if generated:
            return _Watching(views, join_key(namespace, generated), kind, None, generated=True)
        present = self._present(known, key, namespace)
        if not uid and present is not None:
            uid = present.uid
        return _Watching(views, key, kind, present, uid=uid, version=version)


@final
class _Watching:
    """The time between sending a write and its answer."""

    __slots__ = ("_before", "_generated", "_key", "_kind", "_uid", "_version", "_views")

    def __init__(
        self,
        views: list[CacheView],
        key: str,
        kind: WriteKind,
        before: Resource | None,
        *,
        uid: str = "",
        version: str = "",
        generated: bool = False,
    ) -> None:
        self._views = views
        self._key = key
        self._kind = kind
        self._before = before
        self._uid = uid
        self._version = version
        self._generated = generated

    def __enter__(self) -> Resource | None:
        """Return the object as this program knows it before the write."""
        return self._before

    def __exit__(self, exc_type: object, exc: BaseException | None, traceback: object) -> None:
        if exc is not None and may_have_been_carried_out(exc):
            for view in self._views:
                if self._generated:
                    view.lost_sight_of_generated(self._key)
                else:
                    view.lost_sight(self._key, self._kind, uid=self._uid, version=self._version)


def _generate_name(body: bytes) -> str:
    metadata: dict[str, Any] = msgspec.json.decode(body)["metadata"]
    return str(metadata.get("generateName") or "")


def _still_there(answer: Resource) -> bool:
    """Tell whether an object that a deletion answered with was only marked for deletion."""
    if answer.deletion_timestamp is None:
        return False
    grace = answer["metadata"].get("deletionGracePeriodSeconds")
    return bool(answer.finalizers) or (grace is not None and grace > 0)
