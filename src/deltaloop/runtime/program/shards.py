"""Work of one member of a sharded program: its caches, queues and running reconciles."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, final

from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.shard_selector import ShardField, ShardSelector
from deltaloop.cache.informer import Informer
from deltaloop.runtime.errors import InvalidControllerError
from deltaloop.runtime.program.wiring import Wire, Wires
from deltaloop.runtime.reconcile.loop import ReconcileLoop
from deltaloop.runtime.reconcile.own_keys import OwnKeys
from deltaloop.sharding.core.key_ranges import KeyRanges, ShardKey
from deltaloop.sharding.share import Share

if TYPE_CHECKING:
    from deltaloop.runtime.enqueue import AcceptsKeys

_SOME: Final = 1000
_NOTHING: Final = ((0, 1),)
"""Selection of a member without ranges, because a selector cannot be empty."""


def field_of(wire: Wire, wires: Wires, share: Share) -> ShardKey | None:
    """Return the field by which a member caches its part of a kind, or None if it needs all objects."""
    is_primary = wire is wires.wires[0]
    if share.by == "namespace" and wires.kind.namespaced:
        maps_anywhere = wire.watch.to is not None or bool(wire.watch.by_index) or bool(wire.watch.namespace)
        return "namespace" if is_primary or (wire.kind.namespaced and not maps_anywhere) else None
    return ("label" if share.labels is not None else "name") if is_primary else None


def require_sharded_by_label(plans: Sequence[Wires], share: Share) -> None:
    if share.labels is None:
        return
    first = plans[0]
    share.labels.namespaced = first.kind.namespaced
    for plan in plans:
        if plan.kind != first.kind or plan.controller.namespace != first.controller.namespace:
            problem = f"must be {first.kind} in one program that is sharded by a label. Use separate programs."
            raise InvalidControllerError(plan.controller.name, problem, argument="resource")
        if plan.controller.sources and not plan.kind.namespaced:
            problem = "must be empty if objects without a namespace are sharded by a label, because a key can lack one."
            raise InvalidControllerError(plan.controller.name, problem, argument="sources")


@final
class MemberWork:
    def __init__(self, share: Share, clock: Callable[[], float]) -> None:
        self.loops: Sequence[ReconcileLoop] = ()
        self.informers: dict[Informer[Any], ShardField] = {}
        self._share = share
        self._clock = clock
        self._sources: list[OwnKeys] = []
        share.is_running = lambda key: self.is_running(key.__eq__)

    def of_source(self, queue: AcceptsKeys) -> OwnKeys:
        keys = OwnKeys(queue, self._share, keeps_others=True)
        self._sources.append(keys)
        return keys

    def selector(self, wire: Wire, wires: Wires) -> ShardSelector | None:
        """Return the selector of a cache before the member has ranges, or None if it needs all objects."""
        field = field_of(wire, wires, self._share)
        return None if field is None else self._selector(field, _NOTHING)

    def _selector(self, field: ShardField, bounds: Sequence[tuple[int, int]]) -> ShardSelector:
        labels = self._share.labels
        if labels is None or field != "label":
            return ShardSelector(field, bounds)
        return ShardSelector(field, bounds, label=labels.label, follower=labels)

    async def hold(self, ranges: KeyRanges) -> None:
        bounds = ranges.bounds or _NOTHING
        async with asyncio.TaskGroup() as group:
            for informer, field in self.informers.items():
                group.create_task(informer.change_shard(self._selector(field, bounds)))
        if self._share.labels is not None:
            self._share.labels.hold(KeyRanges(bounds))

    def reached(self) -> int:
        return min(int(each.last_sync_resource_version or 0) for each, by in self.informers.items() if by == "label")

    def queue_keys(self, keys: list[str]) -> None:
        trigger = Trigger(source="shard", verb="gained", at=self._clock())
        for loop in self.loops:
            for key in keys:
                loop.inbox.add(key, trigger=trigger)
        for each in self._sources:
            each.take_up()

    def is_running(self, is_in: Callable[[str], bool]) -> bool:
        return any(is_in(run.key) for loop in self.loops for run in loop.runs.present())

    def interrupt(self, is_in: Callable[[str], bool]) -> None:
        for loop in self.loops:
            loop.interrupt(is_in)

    def forget(self, is_in: Callable[[str], bool]) -> None:
        for loop in self.loops:
            loop.forget(is_in)

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
