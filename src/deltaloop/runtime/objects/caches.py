"""Caches of one controller for its mappings, which never read from the server."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any, TypeVar, final, overload

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.keys import join_key
from deltaloop.api.list_options import parsed_selector
from deltaloop.api.resource import Resource, decoder, untyped
from deltaloop.api.resource_type import Kind, ResourceType, TypedKind, as_kind
from deltaloop.cache.errors import UnknownIndexError
from deltaloop.runtime.errors import InvalidControllerError
from deltaloop.runtime.objects.cached_views import CacheView

T = TypeVar("T")


@final
class Caches:
    """Caches of the controller's own kind and of ``owns``, ``watches`` and ``reads``; a manager creates them.

    They show own writes. Caches with selectors are excluded because they are incomplete. Use them on the event loop
    only.
    """

    def __init__(self, controller: str) -> None:
        """Create an empty registry; ``controller`` is a name for errors."""
        self._controller = controller
        self._kinds: dict[str, ResourceType[Any]] = {}
        self._views: dict[str, builtins.list[CacheView]] = {}

    def add(self, name: Kind, kind: ResourceType[Any], view: CacheView) -> None:
        """Add a cache.

        ``name`` is the declared kind.
        """
        self._kinds[str(name)] = self._kinds[str(kind)] = untyped(kind)
        views = self._views.setdefault(str(kind), [])
        if view not in views:
            views.append(view)

    @overload
    def find(self, kind: TypedKind[T], name: str, *, namespace: str | None = None) -> T | None: ...
    @overload
    def find(self, kind: str, name: str, *, namespace: str | None = None) -> Resource | None: ...
    def find(self, kind: Kind, name: str, *, namespace: str | None = None) -> Any:
        """Return one object; None if it does not exist.

        ``namespace`` is required for namespaced kinds.

        Raises:
            InvalidControllerError: If the controller declares no such cache.
            InvalidArgumentError: If the namespace is missing.
        """
        known, views = self._of(kind)
        if known.namespaced and not namespace:
            raise InvalidArgumentError(f"must be set for {known} {name!r}.", argument="namespace")
        place = namespace if known.namespaced else None
        view = next((view for view in views if view.namespace in (None, place)), None)
        obj = None if view is None else view.get(join_key(place, name))
        return None if obj is None else decoder(known)(obj)

    @overload
    def list(
        self, kind: TypedKind[T], *, namespace: str | None = None, selector: str | None = None
    ) -> builtins.list[T]: ...
    @overload
    def list(
        self, kind: str, *, namespace: str | None = None, selector: str | None = None
    ) -> builtins.list[Resource]: ...
    def list(self, kind: Kind, *, namespace: str | None = None, selector: str | None = None) -> builtins.list[Any]:
        """Return the objects of a kind.

        None means all cached namespaces, or all labels.

        Raises:
            InvalidControllerError: If the controller declares no such cache.
        """
        known, views = self._of(kind)
        place = namespace if known.namespaced else None
        by_label = None if selector is None else parsed_selector(selector)
        return _decoded(known, (view.list(place, by_label) for view in views))

    @overload
    def by_index(self, kind: TypedKind[T], index: str, value: str) -> builtins.list[T]: ...
    @overload
    def by_index(self, kind: str, index: str, value: str) -> builtins.list[Resource]: ...
    def by_index(self, kind: Kind, index: str, value: str) -> builtins.list[Any]:
        """Return the objects of all namespaces that an index contains under a value.

        ``index`` is the name that the controller or the ``Watch`` declares.

        Raises:
            InvalidControllerError: If the controller declares no such cache.
            UnknownIndexError: If the cache has no such index.
        """
        known, views = self._of(kind)
        indexed = [view for view in views if view.has_index(index)]
        if not indexed:
            raise UnknownIndexError(index, {name for view in views for name in view.informer.indexer.get_indexers()})
        return _decoded(known, (view.by_index(index, value) for view in indexed))

    def _of(self, kind: Kind) -> tuple[ResourceType[Any], builtins.list[CacheView]]:
        kind = as_kind(kind)
        known = self._kinds.get(str(kind))
        if known is None:
            raise InvalidControllerError(
                self._controller,
                f"must contain {kind} without selectors, because a mapping reads it. Or use reads=[...].",
                argument="watches",
            )
        return (kind if isinstance(kind, ResourceType) else known), self._views[str(known)]

    def __repr__(self) -> str:
        return f"<Caches of {self._controller}: {', '.join(self._views)}>"


def _decoded(known: ResourceType[Any], found: Iterable[Iterable[Resource]]) -> builtins.list[Any]:
    """Decode the objects of several caches without duplicates, because caches can overlap."""
    return [*map(decoder(known), {obj.key: obj for objects in found for obj in objects}.values())]
