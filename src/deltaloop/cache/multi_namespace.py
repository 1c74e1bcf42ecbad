"""Several informers of one kind, one for each namespace, that look like one.

For programs that may read a few namespaces and not all of them. Each namespace is listed and watched on its own, so
that there is no common resource version: ``wait_for_resource_version`` and freshness are asked of one namespace's
informer.

Source: controller-runtime pkg/cache/multi_namespace_cache.go; client-go has no such thing.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Mapping
from typing import Generic, TypeVar, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.keys import split_meta_namespace_key
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.core.freshness import Freshness
from deltaloop.cache.core.store import IndexFunc
from deltaloop.cache.errors import CacheSyncError, SyncFailure
from deltaloop.cache.handlers import HandlerOptions, ReceivedObjectHandler, ResourceEventHandler
from deltaloop.cache.informer import Informer
from deltaloop.cache.listener import Registration
from deltaloop.cache.lister import Lister
from deltaloop.cache.store import Indexer

T_co = TypeVar("T_co", covariant=True)


@final
class MultiNamespaceInformer(Generic[T_co]):
    """The informers of several namespaces as one ``SharedIndexInformer``."""

    def __init__(self, resource_type: ResourceType[T_co], informers: Mapping[str, Informer[T_co]]) -> None:
        """Join informers.

        Args:
            resource_type: The kind that all informers watch.
            informers: One for each namespace, at least one.

        Raises:
            InvalidArgumentError: If there is none.
        """
        if not informers:
            raise InvalidArgumentError(f"an informer of {resource_type} in several namespaces needs at least one")
        self.resource_type = resource_type
        self.informers: Mapping[str, Informer[T_co]] = dict(informers)
        self.name: str = f"{resource_type} in namespaces {', '.join(sorted(self.informers))}"

    @property
    def has_synced(self) -> bool:
        """Whether the first full list of every namespace is in the cache."""
        return all(informer.has_synced for informer in self.informers.values())

    @property
    def stopped(self) -> bool:
        """Whether one of the informers has ended: what it caches grows old."""
        return any(informer.stopped for informer in self.informers.values())

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T_co] | ReceivedObjectHandler,
        *,
        name: str = "",
        options: HandlerOptions | None = None,
    ) -> Registration:
        """Tell a handler about every object and every change, in order for each namespace.

        A handler that waits is called for other namespaces meanwhile.

        Raises:
            InformerStoppedError: If an informer has stopped; the handler was added to none then.
        """
        parts: dict[str, Registration] = {}
        try:
            for namespace, informer in self.informers.items():
                parts[namespace] = informer.add_event_handler(handler, name=name, options=options)
        except BaseException:
            for namespace, part in parts.items():
                self.informers[namespace].remove_event_handler(part)
            raise
        return _JoinedRegistration(parts)

    def remove_event_handler(self, registration: Registration) -> None:
        """Tell a handler nothing more; removing twice, or what belongs to another informer, does nothing."""
        if isinstance(registration, _JoinedRegistration):
            for namespace, part in registration.parts.items():
                if namespace in self.informers:
                    self.informers[namespace].remove_event_handler(part)

    def add_indexers(self, indexers: Mapping[str, IndexFunc[Resource]]) -> None:
        """Add indexes at any time.

        Raises:
            IndexerConflictError: If a name is taken by another function.
        """
        for informer in self.informers.values():
            informer.add_indexers(indexers)

    def freshness(self) -> dict[str, Freshness]:
        """Return how current the cache of each namespace is."""
        return {namespace: informer.freshness() for namespace, informer in self.informers.items()}

    async def wait_for_sync(self, timeout: float | None = 30.0, *, fail_fast: bool = True) -> None:
        """Wait until the first full list of every namespace is in the cache.

        ``timeout`` is in seconds; None waits for ever.

        Raises:
            CacheSyncError: If that takes longer, or the server refuses; it names each namespace that is behind.
        """
        results = await asyncio.gather(
            *(informer.wait_for_sync(timeout, fail_fast=fail_fast) for informer in self.informers.values()),
            return_exceptions=True,
        )
        raise_sync_failures(results)

    def lister(self) -> Lister[T_co]:
        """Return a reader of all the namespaces."""
        indexers = {namespace: informer.indexer for namespace, informer in self.informers.items()}
        return Lister(JoinedIndexer(indexers), self.resource_type)

    def __repr__(self) -> str:
        return f"<MultiNamespaceInformer {self.name}: {'synced' if self.has_synced else 'not synced'}>"


def raise_sync_failures(results: builtins.list[BaseException | None]) -> None:
    """Raise one ``CacheSyncError`` for all that are among the results of waiting; anything else as it is."""
    failures: builtins.list[SyncFailure] = []
    for result in results:
        if isinstance(result, CacheSyncError):
            failures.extend(result.failures)
        elif isinstance(result, BaseException):
            raise result
    if failures:
        raise CacheSyncError(failures)


@final
class JoinedIndexer:
    """Reads the stores of several namespaces as one."""

    def __init__(self, indexers: Mapping[str, Indexer[Resource]]) -> None:
        """Read ``indexers``, by namespace."""
        self._indexers = indexers

    def get_by_key(self, key: str) -> Resource | None:
        """Return one object, or None."""
        indexer = self._indexers.get(split_meta_namespace_key(key).namespace)
        return None if indexer is None else indexer.get_by_key(key)

    def list(self) -> builtins.list[Resource]:
        """Return all objects, one namespace after the other."""
        return [obj for indexer in self._indexers.values() for obj in indexer.list()]

    def by_index(self, name: str, value: str) -> builtins.list[Resource]:
        """Return the objects filed under an index value, one namespace after the other.

        Raises:
            UnknownIndexError: If there is no such index.
        """
        return [obj for indexer in self._indexers.values() for obj in indexer.by_index(name, value)]

    def __len__(self) -> int:
        return sum(len(indexer) for indexer in self._indexers.values())


@final
class _JoinedRegistration:
    """A handler's places at several informers."""

    def __init__(self, parts: Mapping[str, Registration]) -> None:
        self.parts = parts

    @property
    def name(self) -> str:
        return next(iter(self.parts.values())).name

    @property
    def has_synced(self) -> bool:
        return all(part.has_synced for part in self.parts.values())

    @property
    def pending(self) -> int:
        return sum(part.pending for part in self.parts.values())

    @property
    def failures(self) -> int:
        return sum(part.failures for part in self.parts.values())
