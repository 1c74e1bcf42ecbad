"""Drives core/listwatch.py: keeps a store, or a queue of deltas, equal to what the server has.

It lists, watches, and begins again after every failure, until it is cancelled. Each decision is the core's; here is who
waits, asks, applies and reports.

Every error is logged and given to ``on_error``. None ends the reflector: not a malformed line, not an object without a
name, not a store that refuses what it is given. The deadline of a stream is the client's affair;
``statistics().last_confirmed_at`` says when the server last gave a sign of life.

Source: client-go tools/cache/reflector.go.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Final, Protocol, final

from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.listwatch import (
    Decision,
    Listed,
    Reaction,
    ReflectorMachine,
    ReflectorOptions,
    ReflectorStatistics,
    Verdict,
    Wait,
)
from deltaloop.cache.core.listwatch import List as ListEffect
from deltaloop.cache.core.listwatch import Watch as WatchEffect
from deltaloop.cache.errors import describe_error
from deltaloop.cache.listwatch import ListerWatcher

_logger: Final = logging.getLogger("deltaloop.cache")
_EVENTS_PER_TURN: Final = 100


class ReflectorStore(Protocol):
    """What a reflector fills: a ``DeltaFIFO``, or a ``Store`` for a plain mirror."""

    def add(self, obj: Resource) -> None:
        """An object came into being."""
        ...

    def update(self, obj: Resource) -> None:
        """An object changed."""
        ...

    def delete(self, obj: Resource) -> None:
        """An object went away."""
        ...

    def replace(self, objects: tuple[Resource, ...], resource_version: str) -> None:
        """Everything that exists is this."""
        ...


@final
class Reflector:
    """Mirrors one kind into a store, for as long as it runs."""

    def __init__(
        self,
        lister_watcher: ListerWatcher,
        store: ReflectorStore,
        *,
        name: str = "",
        options: ReflectorOptions | None = None,
        on_error: Callable[[Reaction], object] | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Make a reflector that does nothing yet.

        Args:
            lister_watcher: Where objects come from.
            store: Where they go.
            name: What to call it in the log; ``str(lister_watcher)`` by default.
            options: Numbers.
            on_error: Called with every error and what follows it; what it raises is logged.
            chance: Draws the numbers in [0, 1) that spread waits and watch timeouts.
        """
        self.name = name or str(lister_watcher)
        self._lister_watcher = lister_watcher
        self._store = store
        self._core = ReflectorMachine(options)
        self._on_error = on_error
        self._chance = chance

    def statistics(self) -> ReflectorStatistics:
        """Return what was done and seen so far; from any thread."""
        return self._core.statistics()

    @property
    def last_sync_resource_version(self) -> str:
        """The last version seen, in a list, an event or a bookmark."""
        return self._core.resource_version

    async def run(self) -> None:
        """List and watch until cancelled; cancellation closes the watch and leaves the store as it is."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        while True:
            match self._core.ask(now, chance=self._chance()):
                case Wait(until):
                    await asyncio.sleep(max(0.0, until - loop.time()))
                    # The wait is over, whatever the rounding of the clock says.
                    now = max(until, loop.time())
                    continue
                case ListEffect() as effect:
                    await self._list(effect, loop)
                case WatchEffect() as effect:
                    await self._watch(effect, loop)
            now = loop.time()

    async def _list(self, effect: ListEffect, loop: asyncio.AbstractEventLoop) -> None:
        try:
            page = await self._lister_watcher.list(effect.options)
        except Exception as error:  # noqa: BLE001 - whatever the way to the server raises is reported and answered
            self._report(self._core.list_failed(error, loop.time(), chance=self._chance()))
            return
        outcome = self._core.listed(page, loop.time(), chance=self._chance())
        if isinstance(outcome, Reaction):
            self._report(outcome)
        elif outcome is not None:
            self._replace(outcome, loop)

    def _replace(self, listed: Listed, loop: asyncio.AbstractEventLoop) -> None:
        if listed.skipped:
            _logger.warning(
                "a list has objects without a name; they are left out",
                extra={"reflector": self.name, "objects": listed.skipped},
            )
        try:
            self._store.replace(listed.items, listed.resource_version)
        except Exception as error:  # noqa: BLE001 - a store may raise anything; the answer is to list again
            self._report(self._core.store_failed(error, loop.time(), chance=self._chance()))
            return
        _logger.debug(
            "listed",
            extra={
                "reflector": self.name,
                "objects": len(listed.items),
                "resource_version": listed.resource_version,
            },
        )

    async def _watch(self, effect: WatchEffect, loop: asyncio.AbstractEventLoop) -> None:
        refusal: Exception | None = None
        try:
            async with self._lister_watcher.watch(effect.options) as events:
                self._core.watch_opened(loop.time())
                handled = 0
                async for event in events:
                    refusal = self._handle(event, loop)
                    if refusal is not None:
                        break
                    handled += 1
                    if handled % _EVENTS_PER_TURN == 0:
                        await asyncio.sleep(0)  # a stream that is always ready must not starve everybody else
        except Exception as error:  # noqa: BLE001 - whatever the way to the server raises is reported and answered
            if refusal is None:
                self._report(self._core.watch_failed(error, loop.time(), chance=self._chance()))
                return
        if refusal is not None:
            self._report(self._core.store_failed(refusal, loop.time(), chance=self._chance()))
            return
        reaction = self._core.watch_ended(loop.time(), chance=self._chance())
        if reaction is not None:
            self._report(reaction)

    def _handle(self, event: WatchEvent, loop: asyncio.AbstractEventLoop) -> Exception | None:
        verdict = self._core.watch_event(event, loop.time())
        if verdict is Verdict.SKIP:
            _logger.warning(
                "a watch event carries an object without a name; it is passed over",
                extra={"reflector": self.name, "type": event.type.value},
            )
        if verdict is not Verdict.APPLY:
            return None
        try:
            match event.type:
                case EventType.ADDED:
                    self._store.add(event.object)
                case EventType.MODIFIED:
                    self._store.update(event.object)
                case _:
                    self._store.delete(event.object)
        except Exception as error:  # noqa: BLE001 - a store may raise anything; the answer is to list again
            return error
        return None

    def _report(self, reaction: Reaction) -> None:
        expected = reaction.decision is not Decision.LIST_LATER and reaction.delay == 0
        _logger.log(
            logging.INFO if expected else logging.WARNING,
            "list or watch failed",
            extra={
                "reflector": self.name,
                "place": reaction.place.value,
                "error": describe_error(reaction.error),
                "next": reaction.decision.value,
                "delay": round(reaction.delay, 3),
            },
        )
        if self._on_error is None:
            return
        try:
            self._on_error(reaction)
        except Exception:
            _logger.exception("the error handler of a reflector raised", extra={"reflector": self.name})

    def __repr__(self) -> str:
        return f"<Reflector {self.name} {self._core.phase} at {self.last_sync_resource_version or '-'}>"
