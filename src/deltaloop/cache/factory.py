"""One informer for each kind, shared by all who ask.

Source: client-go informers/factory.go.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
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
from deltaloop.cache.informer_selection import InformerSelection, ObjectSelection
from deltaloop.cache.listwatch import ListWatch, ListWatchClient

if TYPE_CHECKING:
    from deltaloop.cache.multi_namespace import MultiNamespaceInformer

T = TypeVar("T")

_logger: Final = logging.getLogger("deltaloop.cache")


class _Identity(msgspec.Struct, frozen=True):
    """What makes two requests for an informer the same."""

    kind: ResourceType[Any]
    model: type[Any] | None
    namespace: str | None
    label_selector: str
    field_selector: str
    transform: Callable[[Resource], Resource] | None
    keep_managed_fields: bool
    compression: Compression | None
    metadata_only: bool


@final
class InformerFactory:
    """Makes, starts and stops informers; an async context manager.

    Entering starts the informers asked for before; one that is asked for inside starts at once. Leaving stops all of
    them and waits for their end.
    """

    def __init__(
        self,
        client: ListWatchClient,
        *,
        namespace: str | None = None,
        options: InformerOptions | None = None,
        tweak: Callable[[ListOptions], ListOptions] | None = None,
    ) -> None:
        """Make a factory without informers.

        Args:
            client: Who asks the server; the factory does not close it.
            namespace: Watch this namespace only; None means all. Kinds without namespaces are not affected.
            options: Options of all its informers, a transform among them.
            tweak: Changes the options of every list and watch; see ``ListWatch``.
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
        """Return an informer: the same one whenever kind, class and everything asked for but indexers are the same.

        It is kept until the factory is left; ``use`` is for those who need it for a while.

        Args:
            resource_type: Which kind; a built-in one may be named, such as ``apps/v1/Deployment``.
            metadata_only: Whether only the metadata of objects is asked for and cached (``PartialObjectMetadata``);
                they come as ``Resource``, whatever the kind's class is.
            namespace: Watch this namespace only; None is the factory's own. Kinds without namespaces are not affected.
            indexers: Index functions by name; added to those that it has.
            label_selector: Only objects with such labels.
            field_selector: Only objects with such fields.
            transform: Makes the object that is cached out of the one that comes; None is the factory's own.
            keep_managed_fields: Whether cached objects keep ``metadata.managedFields``; None is as the options say.
            compression: ``zstd`` keeps cached objects compressed; None is as the options say.

        Raises:
            UnknownResourceError: If no built-in kind has that name.
            IndexerConflictError: If an index of that name exists with another function.
            InformerStoppedError: If the factory was left: nothing would ever come.
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
        """Return the informers of several namespaces as one; otherwise as ``informer``.

        Raises:
            InvalidArgumentError: If there is no namespace, or the kind has none.
        """
        kind: ResourceType[Any] = parse_resource_type(resource_type)
        if not kind.namespaced:
            raise InvalidArgumentError(f"{kind} has no namespaces")
        kind = dataclasses.replace(kind, model=None) if metadata_only else kind
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
        """Use an informer for a while: it runs inside the block, and stops when its last user leaves.

        An informer that was asked for with ``informer``, too, goes on. Leaving waits for the end of one that stops.

        Raises:
            InformerStoppedError: On entering, if the factory was left; else as ``informer``.
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
            raise InformerStoppedError("the informer factory was left; make a new one")
        kind: ResourceType[Any] = parse_resource_type(resource_type)
        if metadata_only:
            kind = dataclasses.replace(kind, model=None)  # a class wants more than the metadata
        options = self._options
        keep = selection.get("keep_managed_fields")
        return _Identity(
            kind,
            kind.model,
            (selection.get("namespace") or self._namespace) if kind.namespaced else None,
            selection.get("label_selector", ""),
            selection.get("field_selector", ""),
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
            del self._tasks[informer]  # not before: if this is cancelled, leaving the factory waits for its end

    def start(self) -> None:
        """Start the informers that do not run yet; entering the factory does it, too.

        Raises:
            InformerStoppedError: If the factory was left.
        """
        if self._left:
            raise InformerStoppedError("the informer factory was left; make a new one")
        for informer in self._informers.values():
            self._start(informer)

    async def wait_for_sync(self, timeout: float | None = 30.0, *, fail_fast: bool = True) -> None:
        """Start what does not run yet, and wait until every cache holds its first full list.

        Args:
            timeout: Seconds for all of them together; None waits for ever.
            fail_fast: Whether to raise as soon as the server says of one kind that it is not allowed (401, 403) or does
                not exist (404); the informers go on trying. False waits until that has changed.

        Raises:
            CacheSyncError: If that takes longer, or the server refuses; it names each kind that is refused or behind,
                its last error and since when.
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
        # Those that only have not come yet are not named when another one is refused.
        refused = [failure for failure in late if fail_fast and failure.refused]
        if late:
            raise CacheSyncError(refused or late)

    async def shutdown(self) -> None:
        """Stop all informers and wait for their end; leaving the factory does it, too.

        Repeating it is fine.
        """
        self._left = True
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        """Start the informers asked for so far.

        Raises:
            InformerStoppedError: If the factory was left before.
        """
        self.start()
        self._entered = True
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop all informers and wait for their end."""
        await self.shutdown()

    async def _run(self, informer: Informer[Any]) -> None:
        try:
            await informer.run()
        except Exception:
            # Nothing that a server or a handler does comes here; it would be a fault of ours, and must not stay silent.
            _logger.exception("informer ended by an unexpected error", extra={"resource": informer.name})

    def __repr__(self) -> str:
        return f"<InformerFactory {', '.join(repr(informer) for informer in self._informers.values()) or 'empty'}>"
