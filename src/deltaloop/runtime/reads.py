"""The reading half of a reconciler's client: from the cache where there is one, own writes included.

A read asks the server instead when there is no cache of that kind and namespace, when the cache has not been confirmed
within ``max_staleness`` seconds, and when a write of this program to that object has an unknown outcome (it got no
answer, or was cancelled on its way). Core: ``runtime/core/overlay.py``.
"""

from __future__ import annotations

import builtins
from typing import Any, Final, TypeVar, overload

from deltaloop.api.errors import InvalidArgumentError, UnknownResourceError
from deltaloop.api.keys import join_key
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.selectors import LabelSelector
from deltaloop.api.status import ApiError, NotFoundError, Status, StatusDetails, error_from_status
from deltaloop.cache.lister import decoder
from deltaloop.client import Client
from deltaloop.runtime.views import CacheView, Views, untyped

T = TypeVar("T")

_MANY: Final = 20
"""From so many uncertain objects on, one list is cheaper than to read each."""


class CachedReads:
    """Reads objects as this program knows them. Made by a manager.

    ``max_staleness`` is in seconds; None takes the cache as it is.
    """

    def __init__(self, client: Client, views: Views) -> None:
        """Read from ``views``, and through ``client`` what is not there."""
        self._client = client
        self._views = views

    @property
    def live(self) -> Client:
        """The client itself: its reads ask the server, always, and its writes are not remembered."""
        return self._client

    @property
    def namespace(self) -> str:
        """Namespace of verbs of one object that name none."""
        return self._client.namespace

    @overload
    async def get(
        self, rt: ResourceType[T], name: str, *, namespace: str | None = None, max_staleness: float | None = None
    ) -> T: ...
    @overload
    async def get(
        self, rt: str, name: str, *, namespace: str | None = None, max_staleness: float | None = None
    ) -> Resource: ...
    async def get(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        *,
        namespace: str | None = None,
        max_staleness: float | None = None,
    ) -> Any:
        """Read one object.

        Args:
            rt: What kind of object.
            name: Its name.
            namespace: The client's by default.
            max_staleness: Seconds within which the server must have confirmed the cache, or it is asked; None takes
                what the cache has.

        Raises:
            NotFoundError: If there is none of that name.
        """
        known = await self._known(rt)
        found = await self._find(known, name, namespace, max_staleness)
        if found is None:
            raise not_found(known, name)
        return decoder(known)(found)

    @overload
    async def find(
        self, rt: ResourceType[T], name: str, *, namespace: str | None = None, max_staleness: float | None = None
    ) -> T | None: ...
    @overload
    async def find(
        self, rt: str, name: str, *, namespace: str | None = None, max_staleness: float | None = None
    ) -> Resource | None: ...
    async def find(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        *,
        namespace: str | None = None,
        max_staleness: float | None = None,
    ) -> Any:
        """Read one object, or None if there is none of that name; otherwise as ``get``."""
        known = await self._known(rt)
        found = await self._find(known, name, namespace, max_staleness)
        return None if found is None else decoder(known)(found)

    @overload
    async def list(
        self,
        rt: ResourceType[T],
        *,
        namespace: str | None = None,
        selector: str | LabelSelector | None = None,
        max_staleness: float | None = None,
    ) -> builtins.list[T]: ...
    @overload
    async def list(
        self,
        rt: str,
        *,
        namespace: str | None = None,
        selector: str | LabelSelector | None = None,
        max_staleness: float | None = None,
    ) -> builtins.list[Resource]: ...
    async def list(
        self,
        rt: ResourceType[Any] | str,
        *,
        namespace: str | None = None,
        selector: str | LabelSelector | None = None,
        max_staleness: float | None = None,
    ) -> builtins.list[Any]:
        """Read all objects, or those of a namespace and a label selector, in no particular order.

        Args:
            rt: What kind of objects.
            namespace: None means all.
            selector: Such as ``app=web,!canary``; None selects all.
            max_staleness: As for ``get``.

        Raises:
            InvalidSelectorError: If the selector cannot be parsed.
        """
        known = await self._known(rt)
        parsed = LabelSelector.parse(selector) if isinstance(selector, str) else selector
        view = await self._settled(known, namespace, max_staleness)
        if view is None:
            found = await self._live_list(known, namespace, parsed)
        else:
            found = view.list(namespace, parsed)
        return [decoder(known)(obj) for obj in found]

    @overload
    async def by_index(
        self,
        rt: ResourceType[T],
        index: str,
        value: str,
        *,
        namespace: str | None = None,
        max_staleness: float | None = None,
    ) -> builtins.list[T]: ...
    @overload
    async def by_index(
        self, rt: str, index: str, value: str, *, namespace: str | None = None, max_staleness: float | None = None
    ) -> builtins.list[Resource]: ...
    async def by_index(
        self,
        rt: ResourceType[Any] | str,
        index: str,
        value: str,
        *,
        namespace: str | None = None,
        max_staleness: float | None = None,
    ) -> builtins.list[Any]:
        """Read the objects that an index of the cache files under a value.

        Args:
            rt: What kind of objects.
            index: The index's name, as given to the ``Watch``.
            value: Which value.
            namespace: The cache's only namespace, if it holds one; no filter.
            max_staleness: As for ``get``.

        Raises:
            InvalidArgumentError: If the program has no cache of that kind.
            UnknownIndexError: If the cache has no such index.
        """
        known = await self._known(rt)
        cache = self._views.find(known, namespace) or next(iter(self._views.of_kind(known)), None)
        if cache is None:
            raise InvalidArgumentError(f"there is no cache of {known}, so it has no index {index!r}: watch the kind")
        view = await self._settled(known, cache.namespace, max_staleness)
        if view is None:
            everything = await self._live_list(known, cache.namespace, None)
            found = [obj for obj in everything if value in cache.index_values(index, obj)]
        else:
            found = view.by_index(index, value)
        return [decoder(known)(obj) for obj in found]

    # -- how

    async def _known(self, rt: ResourceType[T] | str) -> ResourceType[T]:
        if isinstance(rt, ResourceType):
            return rt
        try:
            return parse_resource_type(rt)
        except UnknownResourceError:
            return await self._client.resource(rt)  # type: ignore[return-value]  # T is Resource then

    def _place(self, known: ResourceType[Any], namespace: str | None) -> str | None:
        return (namespace or self._client.namespace) if known.namespaced else None

    async def _find(
        self, known: ResourceType[Any], name: str, namespace: str | None, max_staleness: float | None
    ) -> Resource | None:
        place = self._place(known, namespace)
        key = join_key(place, name)
        view = self._views.find(known, place)
        if view is None:
            return await self._live(known, name, place)
        if view.is_uncertain(key):
            live = await self._live(known, name, place)
            view.settle(key, live)
            return live
        if not view.is_fresh(max_staleness):
            return await self._live(known, name, place)
        return view.get(key)

    async def _settled(
        self, known: ResourceType[Any], namespace: str | None, max_staleness: float | None
    ) -> CacheView | None:
        """Return the view to list from, once nothing in it is uncertain; None to ask the server."""
        view = self._views.find(known, namespace)
        if view is None or not view.is_fresh(max_staleness) or view.has_unknown_names(namespace):
            return None
        keys = view.uncertain(namespace)
        if len(keys) >= _MANY:
            return None
        for key in keys:
            place, _, name = key.rpartition("/")
            view.settle(key, await self._live(known, name, place))
        return view

    async def _live(self, known: ResourceType[Any], name: str, namespace: str | None) -> Resource | None:
        try:
            return await self._client.get(untyped(known), name, namespace=namespace)
        except NotFoundError:
            return None

    async def _live_list(
        self, known: ResourceType[Any], namespace: str | None, selector: LabelSelector | None
    ) -> builtins.list[Resource]:
        options = ListOptions(label_selector="" if selector is None else str(selector))
        return [*(await self._client.list_all(untyped(known), namespace=namespace, options=options)).items]


def not_found(kind: ResourceType[Any], name: str) -> ApiError:
    """Return the error of an object that is not there, as the server would say it."""
    details = StatusDetails(name=name, group=kind.group, kind=kind.plural)
    message = f'{kind.group_resource} "{name}" not found'
    return error_from_status(Status(code=404, reason="NotFound", message=message, details=details))
