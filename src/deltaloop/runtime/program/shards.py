"""Work of one member of a sharded program: its caches, queues and running reconciles."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, final

from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.shard_selector import ShardField, ShardSelector
from deltaloop.cache.informer import Informer
from deltaloop.runtime.enqueue import AcceptsKeys
from deltaloop.runtime.program.wiring import Wire, Wires
from deltaloop.runtime.reconcile.loop import ReconcileLoop
from deltaloop.runtime.reconcile.own_keys import OwnKeys
from deltaloop.sharding.core.key_ranges import KeyRanges, ShardKey
from deltaloop.sharding.share import Share

_SOME: Final = 1000
_NOTHING: Final = ((0, 1),)
"""Selection of a member without ranges, because a selector cannot be empty."""


def field_of(wire: Wire, wires: Wires, share: Share) -> ShardKey | None:
    """Return the field by which a member caches its part of a kind, or None if it needs all objects."""
    is_primary = wire is wires.wires[0]
    if share.by == "namespace" and wires.kind.namespaced:
        maps_anywhere = wire.watch.to is not None or bool(wire.watch.by_index) or bool(wire.watch.namespace)
        return "namespace" if is_primary or (wire.kind.namespaced and not maps_anywhere) else None
    return "name" if is_primary else None


@final
class MemberWork:
    def __init__(self, share: Share, clock: Callable[[], float]) -> None:
        self.loops: Sequence[ReconcileLoop] = ()
        self.informers: dict[Informer[Any], ShardField] = {}
        self._share = share
        self._clock = clock
        self._sources: list[OwnKeys] = []

    def of_source(self, queue: AcceptsKeys) -> OwnKeys:
        keys = OwnKeys(queue, self._share, keeps_others=True)
        self._sources.append(keys)
        return keys

    def selector(self, wire: Wire, wires: Wires) -> ShardSelector | None:
        """Return the selector of a cache before the member has ranges, or None if it needs all objects."""
        field = field_of(wire, wires, self._share)
        return None if field is None else ShardSelector(field, _NOTHING)

    async def hold(self, ranges: KeyRanges) -> None:
        bounds = ranges.bounds or _NOTHING
        async with asyncio.TaskGroup() as group:
            for informer, field in self.informers.items():
                group.create_task(informer.change_shard(ShardSelector(field, bounds)))

    def is_running(self, is_in: Callable[[str], bool]) -> bool:
        return any(is_in(run.key) for loop in self.loops for run in loop.runs.present())

    def interrupt(self, is_in: Callable[[str], bool]) -> None:
        for loop in self.loops:
            loop.interrupt(is_in)

    def queue(self, is_in: Callable[[str], bool]) -> None:
        for loop in self.loops:
            if loop.own_cache is not None:
                self._queue_some(loop, iter(loop.own_cache.list()), is_in)
        for keys in self._sources:
            keys.take_up()

    def _queue_some(self, loop: ReconcileLoop, objects: Iterator[Resource], is_in: Callable[[str], bool]) -> None:
        """Queue some objects now and the rest later, so that the next hand-over does not wait."""
        trigger = Trigger(source="shard", verb="gained", at=self._clock())
        some = [*islice(objects, _SOME)]
        for obj in some:
            if is_in(obj.key):
                loop.queue.add(obj.key, trigger=trigger)
        if some:
            asyncio.get_running_loop().call_soon(self._queue_some, loop, objects, is_in)

    def objects(self) -> Mapping[int, float]:
        found: Counter[int] = Counter()
        for loop in self.loops:
            for obj in () if loop.own_cache is None else loop.own_cache.list():
                found[self._share.number_of(obj.key)] += 1
        return found
