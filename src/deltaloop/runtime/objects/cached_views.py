"""The caches of a program as its reconcilers see them, own writes included.

A view belongs to one informer without selectors. Everything here runs on the event loop, in one step each, so that the
cache and what lies over it are of the same moment.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, TypeVar, final

from deltaloop.api.keys import join_key
from deltaloop.api.managed_fields import strip_managed_fields
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.selectors import LabelSelector
from deltaloop.cache.informer import Informer
from deltaloop.cache.store import NAMESPACE_INDEX
from deltaloop.runtime.core.overlay import Overlay, WriteKind

T = TypeVar("T")


@final
class CacheView:
    """One cache, with this program's writes laid over it."""

    def __init__(
        self,
        informer: Informer[Any],
        *,
        namespace: str | None,
        name: str = "",
        transform: Callable[[Resource], Resource] | None,
        clock: Callable[[], float],
    ) -> None:
        """Look at a cache.

        Args:
            informer: The informer whose cache is read.
            namespace: The only one that it holds; None if it holds all.
            name: Of the only object that it holds; empty if it holds all.
            transform: What the informer makes of objects before it caches them; done to own writes, too.
            clock: Seconds of the event loop.
        """
        self.informer = informer
        self.namespace = namespace
        self.name = name
        self.overlay: Overlay = Overlay()
        self._transform = transform
        self._clock = clock

    def covers(self, namespace: str | None) -> bool:
        """Tell whether the objects of a namespace are here; None or empty asks for all namespaces."""
        return self.namespace is None or namespace == self.namespace

    @property
    def is_whole(self) -> bool:
        """Whether objects are here as the server has them, but for their managed fields."""
        return self._transform in (None, strip_managed_fields)

    def is_fresh(self, max_staleness: float | None) -> bool:
        """Tell whether the server has confirmed the cache within the last seconds; None asks only if it has synced."""
        if not self.informer.has_synced:
            return False
        if max_staleness is None:
            return True
        confirmed_at = self.informer.freshness().last_confirmed_at
        return confirmed_at is not None and self._clock() - confirmed_at <= max_staleness

    def get(self, key: str) -> Resource | None:
        """Return one object; None if there is none."""
        cached = self._lookup(key)
        if key not in self.overlay:
            return cached
        return self.overlay.show(key, cached, reached=self.informer.resource_version, now=self._clock())

    def list(self, namespace: str | None, selector: LabelSelector | None) -> builtins.list[Resource]:
        """Return the objects of a namespace, or all of them, that a selector selects."""
        indexer = self.informer.indexer
        cached = indexer.by_index(NAMESPACE_INDEX, namespace) if namespace else indexer.list()

        def matches(obj: Resource) -> bool:
            return (not namespace or obj.namespace == namespace) and (selector is None or selector.matches(obj.labels))

        if selector is not None:
            cached = [obj for obj in cached if selector.matches(obj.labels)]
        return self._merge(cached, matches)

    def by_index(self, name: str, value: str) -> builtins.list[Resource]:
        """Return the objects filed under an index value.

        Raises:
            UnknownIndexError: If the cache has no such index.
        """
        cached = self.informer.indexer.by_index(name, value)
        values_of = self.informer.indexer.get_indexers()[name]
        return self._merge(cached, lambda obj: value in values_of(obj))

    def has_index(self, name: str) -> bool:
        """Tell whether the cache has an index of a name."""
        return name in self.informer.indexer.get_indexers()

    def index_values(self, name: str, obj: Resource) -> tuple[str, ...]:
        """Return the values that an index files an object under.

        Raises:
            UnknownIndexError: If the cache has no such index.
        """
        self.informer.indexer.index_keys(name, "")  # says which index is missing
        return tuple(self.informer.indexer.get_indexers()[name](obj))

    # -- own writes

    def wrote(self, obj: Resource) -> None:
        """Take the answer to a write, or what was read from the server."""
        shown = obj if self._transform is None else self._transform(obj)
        reached, now = self.informer.resource_version, self._clock()
        self.overlay.wrote(shown, reached=reached, now=now)
        self.overlay.prune(self._lookup, reached=reached, now=now)

    def deleted(self, key: str, *, uid: str, version: str) -> None:
        """Take a deletion that was carried out."""
        now = self._clock()
        self.overlay.deleted(key, uid=uid, version=version, reached=self.informer.resource_version, now=now)

    def lost_sight(self, key: str, kind: WriteKind, *, uid: str, version: str) -> None:
        """Take a write whose outcome is unknown."""
        self.overlay.lost_sight(key, kind, uid=uid, version=version, now=self._clock())

    def lost_sight_of_generated(self, beginning: str) -> None:
        """Take a create with a generated name whose outcome is unknown."""
        self.overlay.lost_sight_of_generated(beginning, now=self._clock())

    def has_unknown_names(self, namespace: str | None) -> bool:
        """Tell whether lists of a namespace, or of all, have to be asked of the server."""
        return self.overlay.has_unknown_names(namespace, now=self._clock())

    def is_uncertain(self, key: str) -> bool:
        """Tell whether an object has to be read from the server."""
        return self.overlay.has_unknown and self.overlay.is_uncertain(key, now=self._clock())

    def uncertain(self, namespace: str | None) -> builtins.list[str]:
        """Return the keys of a namespace, or of all, that have to be read from the server."""
        keys = self.overlay.uncertain(now=self._clock())
        return [key for key in keys if not namespace or key.startswith(f"{namespace}/")]

    def settle(self, key: str, live: Resource | None) -> Resource | None:
        """Take what the server said about an uncertain object, and return what the program is to see of it."""
        shown = live if live is None or self._transform is None else self._transform(live)
        reached, cached = self.informer.resource_version, self._lookup(key)
        is_news = self.overlay.settle(key, shown, reached=reached, now=self._clock(), cached=cached)
        return self.get(key) if is_news else live

    def _lookup(self, key: str) -> Resource | None:
        return self.informer.indexer.get_by_key(key)

    def _merge(self, cached: builtins.list[Resource], matches: Callable[[Resource], bool]) -> builtins.list[Resource]:
        return self.overlay.merge(
            cached, self._lookup, matches=matches, reached=self.informer.resource_version, now=self._clock()
        )


@final
class Views:
    """The views of a program, by kind."""

    def __init__(self) -> None:
        """Begin without views."""
        self._views: dict[ResourceType[Any], builtins.list[CacheView]] = {}
        self._tracked: dict[ResourceType[Any], builtins.list[CacheView]] = {}

    def add(self, resource_type: ResourceType[Any], view: CacheView) -> CacheView:
        """Add the view of one informer, and return it; if there is one of the same informer, return that."""
        views = self._views.setdefault(resource_type, [])
        for known in views:
            if known.informer is view.informer:
                return known
        views.append(view)
        return view

    def add_tracked(self, resource_type: ResourceType[Any], view: CacheView) -> None:
        """Add the view of a watch that comes and goes: it sees own writes, and nothing but its tracker reads it."""
        self._tracked.setdefault(resource_type, []).append(view)

    def drop_tracked(self, resource_type: ResourceType[Any], view: CacheView) -> None:
        """Drop a view that ``add_tracked`` added."""
        self._tracked[resource_type].remove(view)
        if not self._tracked[resource_type]:
            del self._tracked[resource_type]

    def written(self, resource_type: ResourceType[Any], namespace: str | None, name: str) -> builtins.list[CacheView]:
        """Return all views that a write concerns; without a name it concerns all objects of the namespace."""
        tracked = [view for view in self._tracked.get(resource_type, ()) if not name or view.name in ("", name)]
        return [view for view in (*self._views.get(resource_type, ()), *tracked) if view.covers(namespace)]

    def find(self, resource_type: ResourceType[Any], namespace: str | None) -> CacheView | None:
        """Return a view that holds a namespace, or all of them if that is None; None if there is none."""
        for view in self._views.get(resource_type, []):
            if view.covers(namespace if resource_type.namespaced else None):
                return view
        return None

    def newest(self, resource_type: ResourceType[Any], namespace: str, name: str) -> Resource | None:
        """Return the newest state of an object that is known, as the server has it; None if the server has to say."""
        view, key = self.find(resource_type, namespace), join_key(namespace, name)
        if view is None or not view.is_whole or not view.is_fresh(None) or view.is_uncertain(key):
            return None
        return view.get(key)

    def of_kind(self, resource_type: ResourceType[Any]) -> builtins.list[CacheView]:
        """Return all views of a kind."""
        return [*self._views.get(resource_type, [])]
