"""Compare a cache with a list from the server at the same version.

Source: client-go util/consistencydetector.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, final

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError
from deltaloop.cache.core.consistency import ConsistencyReport, State, compare, state_of
from deltaloop.cache.core.reflector.errors import RepeatedContinueError
from deltaloop.cache.core.reflector.rounds import ListRound, unread_of
from deltaloop.cache.errors import InformerStoppedError, NotFreshError, describe_error
from deltaloop.cache.listwatch import ListerWatcher
from deltaloop.cache.queue import Queue
from deltaloop.cache.store import Indexer
from deltaloop.client.errors import TransportError
from deltaloop.client.verbs.resource_list import ResourceList

_logger: Final = logging.getLogger("deltaloop.cache")
_PAGE_SIZE: Final = 500


@final
class ConsistencyChecker:
    def __init__(
        self,
        lister_watcher: ListerWatcher,
        *,
        indexer: Indexer[Resource],
        queue: Queue[Any],
        seen_version: Callable[[], str],
        name: str,
    ) -> None:
        self._lister_watcher = lister_watcher
        self._indexer = indexer
        self._queue = queue
        self._seen_version = seen_version
        self._name = name

    async def check(self, *, timeout: float | None) -> ConsistencyReport:
        """Compare when the queue is empty, and log differences. ``timeout`` limits the wait for an empty queue."""
        queue = self._queue
        try:
            async with asyncio.timeout(timeout):
                while not (queue.is_idle and queue.has_synced):
                    if queue.closed:
                        raise InformerStoppedError(
                            f"the informer of {self._name} has stopped, so its cache cannot be compared"
                        )
                    await queue.wait_for_progress()
        except TimeoutError:
            raise NotFreshError(
                self._name, wanted=self._seen_version(), reached=queue.processed_version, waited=timeout or 0.0
            ) from None
        cached, version = state_of(self._indexer.list()), queue.processed_version
        report = await check_consistency(self._lister_watcher, cached, version)
        if not report.is_consistent:
            _logger.error(
                "cache differs from the server",
                extra={
                    "resource": self._name,
                    "resource_version": report.resource_version,
                    "missing": len(report.missing),
                    "left_over": len(report.left_over),
                    "different": len(report.different),
                },
            )
        return report

    async def run(self, period: float) -> None:
        """Compare every ``period`` seconds until canceled, and skip comparisons that fail."""
        while True:
            await asyncio.sleep(period)
            try:
                await self.check(timeout=period)
            except (ApiError, TransportError, NotFreshError, InformerStoppedError, RepeatedContinueError) as error:
                _logger.debug(
                    "cannot compare cache with the server",
                    extra={"resource": self._name, "error": describe_error(error)},
                )


async def check_consistency(lister_watcher: ListerWatcher, cached: State, resource_version: str) -> ConsistencyReport:
    """Compare a cache in the form of ``state_of`` with a list at exactly its version."""
    listing = ListRound.begin(
        ListOptions(resource_version=resource_version, resource_version_match="Exact", limit=_PAGE_SIZE)
    )
    while True:
        page: ResourceList[Resource] = await lister_watcher.list(listing.options)
        why = listing.never_ends(page)
        if why:
            raise RepeatedContinueError(why)
        if listing.take(page):
            unread = unread_of(listing.unreadable)
            return compare(cached, state_of(listing.items), resource_version=resource_version, unread=unread)
