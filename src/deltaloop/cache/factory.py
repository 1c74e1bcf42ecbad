"""Share one informer per kind between all users.

Source: client-go informers/factory.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, Unpack, final, overload

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType, TypedKind
from deltaloop.cache.core.store import IndexFunc
from deltaloop.cache.errors import CacheSyncError, InformerStoppedError
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.informer_options import Compression
from deltaloop.cache.listwatch import ListWatch

if TYPE_CHECKING:
    from deltaloop.api.shard_selector import ShardSelector
    from deltaloop.cache.informer_keywords import InformerSelection, ObjectSelection
    from deltaloop.cache.interfaces import ListWatchClient
    from deltaloop.cache.multi_namespace import MultiNamespaceInformer

T = TypeVar("T")

_logger: Final = logging.getLogger("deltaloop.cache")


class _Identity(msgspec.Struct, frozen=True):
    kind: ResourceType[Any]
    model: type[Any] | None
    namespace: str | None
    label_selector: str
    field_selector: str
    shard_selector: ShardSelector | None
    transform: Callable[[Resource], Resource] | None
    keep_managed_fields: bool
    compression: Compression | None
    metadata_only: bool


@final
class InformerFactory:
    """Factory that creates, starts and stops informers.

    Use it as an async context manager.

    Entering starts the existing informers. Informers that you request inside the context start immediately. Leaving
    stops all informers and waits for their end.
    """

    def __init__(
        self,
        client: ListWatchClient,
        *,
        namespace: str | None = None,
        options: InformerOptions | None = None,
        tweak: Callable[[ListOptions], ListOptions] | None = None,
    ) -> None:
        """Create a factory without informers.

        Args:
            client: Client for lists and watches. The factory does not close it.
            namespace: Namespace to watch, or None for all. Cluster-scoped kinds ignore it.
            options: Options of all informers, for example a transform.
            tweak: Function that changes the options of each list and watch; see ``ListWatch``.
        """
        self._client = client
        self._namespace = namespace
        self._options = options or InformerOptions()
        self._tweak = tweak
        self._informers: dict[_Identity, Informer[Any]] = {}
        self._tasks: dict[Informer[Any], asyncio.Task[None]] = {}
        self._kept: set[_Identity] = set()
        self._users: Counter[_Identity] = Counter()
        self._entered = False
        self._left = False

    @overload
    def informer(
        self,
        resource_type: TypedKind[T],
        *,
        metadata_only: Literal[False] = False,
        **selection: Unpack[InformerSelection],
    ) -> Informer[T]: ...
    @overload
    def informer(
        self, resource_type: str, *, metadata_only: bool = ..., **selection: Unpack[InformerSelection]
    ) -> Informer[Resource]: ...
    @overload
    def informer(
        self,
        resource_type: TypedKind[Any],
        *,
        metadata_only: Literal[True],
        **selection: Unpack[InformerSelection],
    ) -> Informer[Resource]: ...
    def informer(
        self,
        resource_type: TypedKind[Any] | str,
        *,
        metadata_only: bool = False,
        **selection: Unpack[InformerSelection],
    ) -> Informer[Any]:
        """Return the informer for a kind and selection.

        Calls with the same arguments, apart from ``indexers``, return the same informer. The factory keeps it until you
        leave the factory. For temporary informers, call ``use``.

        Args:
            resource_type: Kind, or the name of a built-in kind such as ``apps/v1/Deployment``.
            metadata_only: Whether to request and cache only the metadata of objects (``PartialObjectMetadata``).
                Objects are then always ``Resource`` instances.
            namespace: Namespace to watch. None means the factory's namespace. Cluster-scoped kinds ignore it.
            indexers: Index functions by name. They are added to an existing informer.
            label_selector: Label selector of the objects.
            field_selector: Field selector of the objects.
            shard_selector: Ranges of hashes of the uid or namespace, by default all.
            transform: Function that returns the object to cache. None means the factory's transform.
            keep_managed_fields: Whether cached objects keep ``metadata.managedFields``. None means the factory's
                option.
            compression: ``zstd`` compresses cached objects. None means the factory's option.

        Raises:
            UnknownResourceError: If the built-in kind does not exist.
            IndexerConflictError: If an index with the same name and another function exists.
            InformerStoppedError: If you have left the factory.
        """
        identity = self._identify(resource_type, metadata_only=metadata_only, selection=selection)
        return self._kept_informer(identity, selection.get("indexers"))

    def _kept_informer(self, identity: _Identity, indexers: Mapping[str, IndexFunc[Resource]] | None) -> Informer[Any]:
        informer = self._find_or_make(identity, indexers)
        self._kept.add(identity)
        if self._entered:
            self.start()
        return informer

    @overload
    def multi_namespace_informer(
        self,
        resource_type: TypedKind[T],
        namespaces: Iterable[str],
        *,
        metadata_only: Literal[False] = False,
        **selection: Unpack[ObjectSelection],
    ) -> MultiNamespaceInformer[T]: ...
    @overload
    def multi_namespace_informer(
        self,
        resource_type: TypedKind[Any],
        namespaces: Iterable[str],
        *,
        metadata_only: Literal[True],
        **selection: Unpack[ObjectSelection],
    ) -> MultiNamespaceInformer[Resource]: ...
    def multi_namespace_informer(
        self,
        resource_type: TypedKind[Any],
        namespaces: Iterable[str],
        *,
        metadata_only: bool = False,
        **selection: Unpack[ObjectSelection],
    ) -> MultiNamespaceInformer[Any]:
        """Return one informer that combines the informers of several namespaces.

        The other arguments work as in ``informer``.

        Raises:
            InvalidArgumentError: If ``namespaces`` is empty or the kind is cluster-scoped.
        """
        kind: ResourceType[Any] = parse_resource_type(resource_type)
        if not kind.namespaced:
            raise InvalidArgumentError(f"must not be set for {kind}.", argument="namespaces")
        kind = msgspec.structs.replace(kind, model=None) if metadata_only else kind
        informers: dict[str, Informer[Any]] = {}
        for namespace in namespaces:
            here: InformerSelection = {**selection, "namespace": namespace}
            identity = self._identify(kind, metadata_only=metadata_only, selection=here)
            informers[namespace] = self._kept_informer(identity, selection.get("indexers"))
        from deltaloop.cache.multi_namespace import MultiNamespaceInformer

        return MultiNamespaceInformer(kind, informers)

    @overload
    def use(
        self,
        resource_type: TypedKind[T],
        *,
        metadata_only: Literal[False] = False,
        **selection: Unpack[InformerSelection],
    ) -> AbstractAsyncContextManager[Informer[T]]: ...
    @overload
    def use(
        self, resource_type: str, *, metadata_only: bool = ..., **selection: Unpack[InformerSelection]
    ) -> AbstractAsyncContextManager[Informer[Resource]]: ...
    @overload
    def use(
        self,
        resource_type: TypedKind[Any],
        *,
        metadata_only: Literal[True],
        **selection: Unpack[InformerSelection],
    ) -> AbstractAsyncContextManager[Informer[Resource]]: ...
    def use(
        self,
        resource_type: TypedKind[Any] | str,
        *,
        metadata_only: bool = False,
        **selection: Unpack[InformerSelection],
    ) -> AbstractAsyncContextManager[Informer[Any]]:
        """Use an informer temporarily: it runs inside the context, and stops when its last user leaves.

        Leaving waits for the end of the informer. An informer that was also requested with ``informer`` continues.

        Raises:
            InformerStoppedError: On entering, if you have left the factory. The other errors of ``informer`` also
                apply.
        """
        return self._use(
            lambda: self._identify(resource_type, metadata_only=metadata_only, selection=selection),
            selection.get("indexers"),
        )

    @asynccontextmanager
    async def _use(
        self, identify: Callable[[], _Identity], indexers: Mapping[str, IndexFunc[Resource]] | None
    ) -> AsyncGenerator[Informer[Any], None]:
        identity = identify()
        informer = self._find_or_make(identity, indexers)
        self._users[identity] += 1
        try:
            self._start(informer)
            yield informer
        finally:
            self._users[identity] -= 1
            if not self._users[identity]:
                del self._users[identity]
                if identity not in self._kept:
                    await self._stop(identity, informer)

    def _identify(
        self,
        resource_type: TypedKind[Any] | str,
        *,
        metadata_only: bool,
        selection: InformerSelection,
    ) -> _Identity:
        if self._left:
            raise InformerStoppedError("the informer factory was closed. Create a new factory.")
        kind: ResourceType[Any] = parse_resource_type(resource_type)
        if metadata_only:
            kind = msgspec.structs.replace(kind, model=None)  # a model needs more than the metadata
        options = self._options
        keep = selection.get("keep_managed_fields")
        return _Identity(
            kind,
            kind.model,
            (selection.get("namespace") or self._namespace) if kind.namespaced else None,
            selection.get("label_selector", ""),
            selection.get("field_selector", ""),
            selection.get("shard_selector"),
            selection.get("transform") or options.transform,
            options.keep_managed_fields if keep is None else keep,
            selection.get("compression") or options.compression,
            metadata_only,
        )

    def _find_or_make(self, identity: _Identity, indexers: Mapping[str, IndexFunc[Resource]] | None) -> Informer[Any]:
        informer = self._informers.get(identity)
        if informer is not None:
            informer.add_indexers(indexers or {})
            return informer
        lister_watcher = ListWatch(
            self._client,
            identity.kind,
            namespace=identity.namespace,
            label_selector=identity.label_selector,
            field_selector=identity.field_selector,
            shard_selector=identity.shard_selector,
            tweak=self._tweak,
            metadata_only=identity.metadata_only,
            drop_managed_fields=not identity.keep_managed_fields,
        )
        options = self._options.replace(
            transform=identity.transform,
            keep_managed_fields=identity.keep_managed_fields,
            compression=identity.compression,
        )
        informer = Informer(lister_watcher, identity.kind, indexers=indexers, options=options)
        self._informers[identity] = informer
        return informer

    def _start(self, informer: Informer[Any]) -> None:
        if informer not in self._tasks and not informer.started:
            self._tasks[informer] = asyncio.create_task(self._run(informer), name=f"informer of {informer.name}")

    async def _stop(self, identity: _Identity, informer: Informer[Any]) -> None:
        if self._informers.get(identity) is informer:
            del self._informers[identity]
        task = self._tasks.get(informer)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            del self._tasks[informer]  # deleted only now, so that shutdown waits for it if this wait is canceled

    def start(self) -> None:
        """Start informers that do not run yet, as entering the factory does.

        Raises:
            InformerStoppedError: If you have left the factory.
        """
        if self._left:
            raise InformerStoppedError("the informer factory was closed. Create a new factory.")
        for informer in self._informers.values():
            self._start(informer)

    async def wait_for_sync(self, timeout: float | None = 30.0, *, fail_fast: bool = True) -> None:
        """Start informers that do not run yet, and wait until all caches contain their first full list.

        Args:
            timeout: Seconds for all informers together, or None for no limit.
            fail_fast: Whether to raise as soon as the server denies access (401, 403) or does not know a kind (404).
                The informers keep retrying. False waits until the problem is solved.

        Raises:
            CacheSyncError: If the timeout expires or the server denies access. It names each affected kind and its last
                error.
        """
        self.start()
        loop = asyncio.get_running_loop()
        began = loop.time()
        informers = [*self._informers.values()]
        waits = [
            asyncio.create_task(informer.wait_for_sync(timeout, fail_fast=fail_fast), name=f"sync of {informer.name}")
            for informer in informers
        ]
        try:
            if waits:
                await asyncio.wait(waits, return_when=asyncio.FIRST_EXCEPTION)
            late = [
                informer.sync_failure(loop.time() - began, now=loop.time())
                for informer in informers
                if not informer.has_synced
            ]
        finally:
            for wait in waits:
                wait.cancel()
            results = await asyncio.gather(*waits, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, CacheSyncError | asyncio.CancelledError):
                raise result
        # If a kind was refused, do not report kinds that are only late.
        refused = [failure for failure in late if fail_fast and failure.refused]
        if late:
            raise CacheSyncError(refused or late)

    async def shutdown(self) -> None:
        """Stop all informers and wait for their end, as leaving the factory does.

        You can call it repeatedly.
        """
        self._left = True
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        """Start the existing informers.

        Raises:
            InformerStoppedError: If you have left the factory.
        """
        self.start()
        self._entered = True
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.shutdown()

    async def _run(self, informer: Informer[Any]) -> None:
        try:
            await informer.run()
        except Exception:
            # Errors of servers and handlers do not reach this line, so this is a bug of deltaloop and must be visible.
            _logger.exception("informer failed unexpectedly", extra={"resource": informer.name})

    def __repr__(self) -> str:
        return f"<InformerFactory {', '.join(repr(informer) for informer in self._informers.values()) or 'empty'}>"
