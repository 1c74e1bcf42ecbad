"""Driver of ``LabelKeys``."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Final, Protocol, final

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.kinds import CONFIG_MAP, LEASE
from deltaloop.api.list_options import ListOptions
from deltaloop.api.redaction import redact
from deltaloop.sharding.core.ownership import NOISE_AFTER
from deltaloop.sharding.core.shard_map import ShardMap
from deltaloop.sharding.objects import SEEN_LABEL, SHARDS_LABEL, ShardOptions, map_text

if TYPE_CHECKING:
    from deltaloop.client import Client
    from deltaloop.sharding.core.label_keys import LabelKeys

_log: Final = logging.getLogger("deltaloop.sharding")
_PERIOD: Final = 0.2
_CHECK_PERIOD: Final = 0.5
_TIMEOUT: Final = 1.0


class LabelWork(Protocol):
    def reached(self) -> int: ...

    def interrupt(self, is_in: Callable[[str], bool]) -> None: ...

    def queue_keys(self, keys: list[str]) -> None: ...


@final
class LabelDriver:
    def __init__(
        self,
        client: Client,
        options: ShardOptions,
        keys: LabelKeys,
        published: MutableMapping[str, str],
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._options = options
        self._keys = keys
        self._published = published
        self._clock = clock
        self._left_since: dict[str, float] = {}

    async def run(self, uid: str, floor: str, work: LabelWork) -> None:
        """Run during a term; ``floor`` is the version in the Lease of this member before it."""
        least = max(int(floor or 0), int(self._published.get(SEEN_LABEL, 0)))
        checked_at = -math.inf
        waits_since: float | None = None
        while True:
            now, seen = self._clock(), self._keys.seen(work.reached())
            least = max(least, seen)
            if seen == least:  # otherwise the caches are older than those of an earlier process of this name
                self._published[SEEN_LABEL] = str(seen)
            self._left_since = {key: self._left_since.get(key, now) for key in self._keys.left}
            late = {key for key, at in self._left_since.items() if now >= at + self._options.drain_timeout}
            if late:
                work.interrupt(late.__contains__)
            if self._keys.waiting and seen == least and now >= checked_at + _CHECK_PERIOD:
                checked_at = now
                asked = dict(self._keys.waiting)
                free = self._keys.release(asked, await self._seen_by_others(uid))
                work.queue_keys(free)
                waits_since = now if free or waits_since is None else waits_since
                if now > waits_since + self._options.election.lease_duration + NOISE_AFTER:
                    extra = {"shards": self._options.name, "keys": [*self._keys.waiting][:10]}
                    _log.warning("keys wait for another member", extra=extra)
                    waits_since = now
            elif not self._keys.waiting:
                waits_since = None
            await asyncio.sleep(_PERIOD)

    async def _seen_by_others(self, uid: str) -> float:
        """Read the version that owners, successors, and all members with a Lease have seen."""
        place = self._options.namespace
        try:
            found = await self._client.get(CONFIG_MAP, self._options.map_name, namespace=place, timeout=_TIMEOUT)
            ranges = ShardMap.decode(map_text(found)).ranges
            selection = ListOptions(label_selector=f"{SHARDS_LABEL}={self._options.name}")
            leases = await self._client.list(LEASE, namespace=place, options=selection, timeout=_TIMEOUT)
            seen = {lease.uid: int(lease.labels.get(SEEN_LABEL, 0)) for lease in leases}
        except (DeltaloopError, OSError, ValueError) as error:
            extra = {"shards": self._options.name, "error": type(error).__name__, "reason": redact(str(error))}
            _log.warning("cannot read the members of a shard program, retrying", extra=extra)
            return -math.inf
        members = {*seen, *(each.owner for each in ranges), *(each.successor for each in ranges)} - {"", uid}
        return min((seen.get(member, 0) for member in members), default=math.inf)
