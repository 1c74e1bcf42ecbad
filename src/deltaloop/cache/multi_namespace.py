"""Combine the informers of several namespaces, for programs that cannot read all namespaces.

Source: controller-runtime pkg/cache/multi_namespace_cache.go; client-go has no equivalent.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, TypeVar, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.keys import split_meta_namespace_key
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.shard_selector import ShardSelector
from deltaloop.cache.core.freshness import Freshness
from deltaloop.cache.core.store import IndexFunc
from deltaloop.cache.errors import CacheSyncError, SyncFailure
from deltaloop.cache.handlers import HandlerOptions
from deltaloop.cache.informer import Informer
from deltaloop.cache.lister import Lister
from deltaloop.cache.store import Indexer

if TYPE_CHECKING:
    from deltaloop.cache.interfaces import ReceivedObjectHandler, Registration, ResourceEventHandler

T_co = TypeVar("T_co", covariant=True)


@final
class MultiNamespaceInformer(Generic[T_co]):
    """Combined informers of several namespaces with the interface of a ``SharedIndexInformer``.

    Namespaces have no common resource version. Call ``wait_for_resource_version`` on the informer of a namespace.
    """

    def __init__(self, resource_type: ResourceType[T_co], informers: Mapping[str, Informer[T_co]]) -> None:
        """Combine informers.

        Args:
            resource_type: Kind of all informers.
            informers: Informers by namespace, at least one.

        Raises:
            InvalidArgumentError: If there are no informers.
        """
        if not informers:
            raise InvalidArgumentError(f"must not be empty for {resource_type}.", argument="namespaces")
        self.resource_type = resource_type
        self.informers: Mapping[str, Informer[T_co]] = dict(informers)
        self.name: str = f"{resource_type} in namespaces {', '.join(sorted(self.informers))}"

    @property
    def has_synced(self) -> bool:
        """Whether all caches contain their first full list."""
        return all(informer.has_synced for informer in self.informers.values())

    @property
    def stopped(self) -> bool:
        """Whether an informer has ended, so that its cache is no longer updated."""
        return any(informer.stopped for informer in self.informers.values())

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T_co] | ReceivedObjectHandler,
        *,
        name: str = "",
        options: HandlerOptions | None = None,
    ) -> Registration:
        """Notify a handler of all objects and changes, in order within each namespace.

        While an async handler waits, it can be called for other namespaces.

        Raises:
            InformerStoppedError: If an informer has stopped. The handler is then not added to any informer.
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
        """Remove a handler.

        Registrations that are unknown or already removed are ignored.
        """
        if isinstance(registration, _JoinedRegistration):
            for namespace, part in registration.parts.items():
                if namespace in self.informers:
                    self.informers[namespace].remove_event_handler(part)

    def add_indexers(self, indexers: Mapping[str, IndexFunc[Resource]]) -> None:
        """Add indexes at any time.

        Raises:
            IndexerConflictError: If a name has another function.
        """
        for informer in self.informers.values():
            informer.add_indexers(indexers)

    def freshness(self) -> dict[str, Freshness]:
        """Return how current the cache of each namespace is."""
        return {namespace: informer.freshness() for namespace, informer in self.informers.items()}

    async def wait_for_sync(self, timeout: float | None = 30.0, *, fail_fast: bool = True) -> None:
        """Wait until all caches contain their first full list.

        ``timeout`` is in seconds; None means no limit.

        Raises:
            CacheSyncError: If the timeout expires or the server denies access. It names each affected namespace.
        """
        results = await asyncio.gather(
            *(informer.wait_for_sync(timeout, fail_fast=fail_fast) for informer in self.informers.values()),
            return_exceptions=True,
        )
        raise_sync_failures(results)

    def lister(self) -> Lister[T_co]:
        """Return a reader of all namespaces."""
        indexers = {namespace: informer.indexer for namespace, informer in self.informers.items()}
        return Lister(JoinedIndexer(indexers), self.resource_type)

    def __repr__(self) -> str:
        return f"<MultiNamespaceInformer {self.name}: {'synced' if self.has_synced else 'not synced'}>"


def raise_sync_failures(results: builtins.list[BaseException | None]) -> None:
    """Raise one combined ``CacheSyncError`` for the failed waits. Other exceptions are raised unchanged."""
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
    def __init__(self, indexers: Mapping[str, Indexer[Resource]]) -> None:
        self._indexers = indexers

    @property
    def shard(self) -> ShardSelector | None:
        return next((indexer.shard for indexer in self._indexers.values()), None)

    def get_by_key(self, key: str) -> Resource | None:
        indexer = self._indexers.get(split_meta_namespace_key(key).namespace)
        return None if indexer is None else indexer.get_by_key(key)

    def list(self) -> builtins.list[Resource]:
        return [obj for indexer in self._indexers.values() for obj in indexer.list()]

    def by_index(self, name: str, value: str) -> builtins.list[Resource]:
        return [obj for indexer in self._indexers.values() for obj in indexer.by_index(name, value)]

    def __len__(self) -> int:
        return sum(len(indexer) for indexer in self._indexers.values())


@final
class _JoinedRegistration:
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
