"""Views of a program's caches with its own writes, for one informer without selectors."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from deltaloop.api.managed_fields import strip_managed_fields
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.informer import Informer
from deltaloop.cache.store import NAMESPACE_INDEX
from deltaloop.client.discovery import BoundKind
from deltaloop.client.verbs.server import UNSURE, Unsure
from deltaloop.runtime.core.overlay import Overlay, StoredWrite, WriteKind

if TYPE_CHECKING:
    from deltaloop.api.selectors import LabelSelector
    from deltaloop.sharding.share import Share

_MOST_BOUND: Final = 1000


@final
class CacheView:
    """One cache with the program's own writes on top."""

    def __init__(
        self,
        informer: Informer[Any],
        *,
        namespace: str | None,
        name: str = "",
        transform: Callable[[Resource], Resource] | None,
        clock: Callable[[], float],
        share: Share | None = None,
    ) -> None:
        """Create a view; None for ``namespace`` and an empty ``name`` mean that the cache has all of them.

        ``transform`` is the informer's transformation, which is also applied to own writes. With a ``share``, the cache
        has only the objects of this share.
        """
        self.share = share
        self.informer = informer
        self.namespace = namespace
        self.name = name
        self.overlay: Overlay = Overlay()
        self.is_whole: bool = transform in (None, strip_managed_fields)
        """Whether objects are complete except for their managed fields."""
        self._transform = transform
        self._clock = clock
        self._indexer = informer.indexer
        self._lookup: Callable[[str], Resource | None] = informer.indexer.get_by_key
        self._cached = informer.indexer._items  # noqa: SLF001 - the event loop needs no lock
        self._has_synced = False

    def covers(self, namespace: str | None, name: str | None) -> bool:
        """Return whether the cache has an object, or all objects of a namespace (None means all)."""
        if self.namespace is not None and self.namespace != namespace:
            return False
        return self.share is None or self.share.covers(namespace, name)

    def is_fresh(self, max_staleness: float | None) -> bool:
        """Return whether the server confirmed the cache within ``max_staleness`` seconds; None requires only a sync."""
        if not self._has_synced:  # a synced cache stays synced
            self._has_synced = self.informer.has_synced
            if not self._has_synced:
                return False
        if max_staleness is None:
            return True
        confirmed_at = self.informer.freshness().last_confirmed_at
        return confirmed_at is not None and self._clock() - confirmed_at <= max_staleness

    def read(self, key: str) -> Resource | Unsure | None:
        """Return one object for a reconcile, or ``UNSURE`` if a request to the server may be necessary."""
        overlay = self.overlay
        if overlay.has_unknown or not (self._has_synced or self.is_fresh(None)):
            return UNSURE
        if key in overlay.entries:
            return self.get(key)
        objects = self._cached.state.objects
        return objects[key] if key in objects else None  # noqa: SIM401 - avoids a call

    def get(self, key: str) -> Resource | None:
        objects, entries = self._cached.state.objects, self.overlay.entries
        cached = objects[key] if key in objects else None  # noqa: SIM401 - same
        if key not in entries:
            return cached
        entry = entries[key]
        if cached is not None and type(entry) is StoredWrite and cached.version >= entry.obj.version > 0:
            del entries[key]
            return cached
        return self.overlay.show(key, cached, self._indexer.last_sync_resource_version, self._clock())

    def newest_whole(self, key: str) -> Resource | None:
        """Return the newest complete state of an object, or None if only the server knows it."""
        if not self.is_whole or not (self._has_synced or self.is_fresh(None)):
            return None
        return None if self.overlay.has_unknown and self.is_uncertain(key) else self.get(key)

    def newest(self, key: str) -> Resource | None:
        """Return an object's state before a write; None if it does not exist or is unknown."""
        return None if self.overlay.has_unknown and self.is_uncertain(key) else self.get(key)

    def list(self, namespace: str | None, selector: LabelSelector | None) -> builtins.list[Resource]:
        """Return the objects of a namespace (None means all) that a selector matches."""
        indexer = self.informer.indexer
        cached = indexer.by_index(NAMESPACE_INDEX, namespace) if namespace else indexer.list()

        def matches(obj: Resource) -> bool:
            return (not namespace or obj.namespace == namespace) and (selector is None or selector.matches(obj.labels))

        if selector is not None:
            cached = [obj for obj in cached if selector.matches(obj.labels)]
        return self._merge(cached, matches)

    def by_index(self, name: str, value: str) -> builtins.list[Resource]:
        """Return the objects under an index value, or raise UnknownIndexError."""
        cached = self.informer.indexer.by_index(name, value)
        values_of = self.informer.indexer.get_indexers()[name]
        return self._merge(cached, lambda obj: value in values_of(obj))

    def has_index(self, name: str) -> bool:
        return name in self.informer.indexer.get_indexers()

    def index_values(self, name: str, obj: Resource) -> tuple[str, ...]:
        """Return the values of an object in an index, or raise UnknownIndexError."""
        self.informer.indexer.index_keys(name, "")  # raises UnknownIndexError
        return tuple(self.informer.indexer.get_indexers()[name](obj))

    # -- own writes

    def wrote(self, obj: Resource) -> None:
        """Record the response to a write, or an object read from the server."""
        shown = obj if self._transform is None else self._transform(obj)
        overlay, reached, now = self.overlay, self._indexer.last_sync_resource_version, self._clock()
        overlay.wrote(shown, reached, now)
        if len(overlay.entries) >= overlay.prune_from:
            overlay.prune(self._lookup, reached=reached, now=now)

    def deleted(self, key: str, *, uid: str, version: str) -> None:
        now = self._clock()
        self.overlay.deleted(key, uid=uid, version=version, reached=self.informer.resource_version, now=now)

    def lost_sight(self, key: str, kind: WriteKind, *, uid: str, version: str) -> None:
        self.overlay.lost_sight(key, kind, uid=uid, version=version, now=self._clock())

    def lost_sight_of_generated(self, beginning: str) -> None:
        """Record a create with a generated name and an unknown outcome."""
        self.overlay.lost_sight_of_generated(beginning, now=self._clock())

    def has_unknown_names(self, namespace: str | None) -> bool:
        """Return whether lists of a namespace (None means all) must be read from the server."""
        return self.overlay.has_unknown_names(namespace, now=self._clock())

    def is_uncertain(self, key: str) -> bool:
        """Return whether an object must be read from the server."""
        return self.overlay.has_unknown and self.overlay.is_uncertain(key, now=self._clock())

    def uncertain(self, namespace: str | None) -> builtins.list[str]:
        """Return the keys of a namespace (None means all) that must be read from the server."""
        keys = self.overlay.uncertain(now=self._clock())
        return [key for key in keys if not namespace or key.startswith(f"{namespace}/")]

    def settle(self, key: str, live: Resource | None) -> Resource | None:
        """Record the server's state of an uncertain object, and return the state that the program sees."""
        shown = live if live is None or self._transform is None else self._transform(live)
        reached, cached = self.informer.resource_version, self._lookup(key)
        is_news = self.overlay.settle(key, shown, reached=reached, now=self._clock(), cached=cached)
        return self.get(key) if is_news else live

    def _merge(self, cached: builtins.list[Resource], matches: Callable[[Resource], bool]) -> builtins.list[Resource]:
        return self.overlay.merge(
            cached, self._lookup, matches=matches, reached=self.informer.resource_version, now=self._clock()
        )


@final
class KindViews:
    """Views of one kind."""

    __slots__ = ("tracked", "views", "whole")

    def __init__(self) -> None:
        self.views: builtins.list[CacheView] = []
        self.whole: CacheView | None = None
        self.tracked: builtins.list[CacheView] = []

    def find(self, namespace: str | None, name: str | None = None) -> CacheView | None:
        """Return a view that covers an object, or a namespace (None means all) without a name; otherwise None."""
        for view in self.views:
            if view.covers(namespace, name):
                return view
        return None

    def written(self, namespace: str | None, name: str) -> builtins.list[CacheView]:
        """Return the views that a write affects. Without a name, it affects all objects of the namespace."""
        tracked = [view for view in self.tracked if not name or view.name in ("", name)]
        return [view for view in (*self.views, *tracked) if view.namespace is None or view.namespace == namespace]


class _BoundViews(dict[BoundKind, KindViews]):
    """Views by bound kind, so that each read and write needs one lookup."""

    def __init__(self, find: Callable[[ResourceType[Any]], KindViews]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, known: BoundKind) -> KindViews:
        if len(self) >= _MOST_BOUND:
            self.clear()
        views = self[known] = self._find(known.type)
        return views


@final
class Views:
    def __init__(self) -> None:
        self._kinds: dict[ResourceType[Any], KindViews] = {}
        self.bound: dict[BoundKind, KindViews] = _BoundViews(self.of)

    def of(self, kind: ResourceType[Any]) -> KindViews:
        return self._kinds.setdefault(kind, KindViews())

    def add(self, resource_type: ResourceType[Any], view: CacheView) -> CacheView:
        """Add the view of an informer and return it, or return the existing view of the same informer."""
        kind = self.of(resource_type)
        for known in kind.views:
            if known.informer is view.informer:
                return known
        kind.views.append(view)
        first = kind.views[0]
        kind.whole = first if first.namespace is None and first.share is None else None
        return view
