"""One informer for each kind, shared by everybody who asks; no core, it decides nothing.

Source: client-go informers/factory.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar, final, overload

from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.core.store import IndexFunc
from deltaloop.cache.errors import CacheSyncError, InformerStoppedError, SyncFailure
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.listwatch import ListWatch, ListWatchClient

T = TypeVar("T")

_logger: Final = logging.getLogger("deltaloop.cache")


@final
class InformerFactory:
    """Makes, starts and stops informers; an async context manager.

    Entering starts the informers asked for before; one that is asked for inside starts at once. Leaving stops all of
    them and waits for their end.
    """

    def __init__(
        self, client: ListWatchClient, *, namespace: str | None = None, options: InformerOptions | None = None
    ) -> None:
        """Make a factory without informers.

        Args:
            client: Who asks the server; the factory does not close it.
            namespace: Watch this namespace only; None means all. Kinds without namespaces are not affected.
            options: Options of all its informers.
        """
        self._client = client
        self._namespace = namespace
        self._options = options or InformerOptions()
        self._informers: dict[tuple[object, ...], Informer[Any]] = {}
        self._tasks: dict[Informer[Any], asyncio.Task[None]] = {}
        self._entered = False
        self._left = False

    @overload
    def informer(
        self,
        resource_type: ResourceType[T],
        *,
        indexers: Mapping[str, IndexFunc[Resource]] | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Informer[T]: ...
    @overload
    def informer(
        self,
        resource_type: str,
        *,
        indexers: Mapping[str, IndexFunc[Resource]] | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Informer[Resource]: ...
    def informer(
        self,
        resource_type: ResourceType[Any] | str,
        *,
        indexers: Mapping[str, IndexFunc[Resource]] | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Informer[Any]:
        """Return the informer of a kind: the same one whenever kind, class and selectors are the same.

        Args:
            resource_type: Which kind; a built-in one may be named, such as ``apps/v1/Deployment``.
            indexers: Index functions by name; added to those that it has.
            label_selector: Only objects with such labels.
            field_selector: Only objects with such fields.

        Raises:
            UnknownResourceError: If no built-in kind has that name.
            IndexerConflictError: If an index of that name exists with another function.
            InformerStoppedError: If the factory was left: nothing would ever come.
        """
        if self._left:
            raise InformerStoppedError("the informer factory was left; make a new one")
        kind: ResourceType[Any] = parse_resource_type(resource_type)
        identity = (kind, kind.model, label_selector, field_selector)
        informer = self._informers.get(identity)
        if informer is None:
            lister_watcher = ListWatch(
                self._client,
                kind,
                namespace=self._namespace if kind.namespaced else None,
                label_selector=label_selector,
                field_selector=field_selector,
            )
            informer = Informer(lister_watcher, kind, indexers=indexers, options=self._options)
            self._informers[identity] = informer
        else:
            informer.add_indexers(indexers or {})
        if self._entered:
            self.start()
        return informer

    def start(self) -> None:
        """Start the informers that do not run yet; entering the factory does it, too.

        Raises:
            InformerStoppedError: If the factory was left.
        """
        if self._left:
            raise InformerStoppedError("the informer factory was left; make a new one")
        for informer in self._informers.values():
            if informer not in self._tasks and not informer.started:
                self._tasks[informer] = asyncio.create_task(self._run(informer), name=f"informer of {informer.name}")

    async def wait_for_sync(self, timeout: float | None = 30.0) -> None:
        """Start what does not run yet, and wait until every cache holds its first full list.

        Args:
            timeout: Seconds for all of them together; None waits for ever.

        Raises:
            CacheSyncError: If that takes longer; it names each kind that is behind, its last error and since when.
        """
        self.start()
        results = await asyncio.gather(
            *(informer.wait_for_sync(timeout) for informer in self._informers.values()), return_exceptions=True
        )
        failures: list[SyncFailure] = []
        for result in results:
            if isinstance(result, CacheSyncError):
                failures.extend(result.failures)
            elif isinstance(result, BaseException):
                raise result
        if failures:
            raise CacheSyncError(failures)

    async def shutdown(self) -> None:
        """Stop all informers and wait for their end; leaving the factory does it, too. Repeating it is fine."""
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
