"""Deletes what no owner is left for, and finishes foreground and orphaning deletes."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.core.controllers.garbage import GarbageCollector
from deltaloop.apiserver.core.stamp import Stamps
from deltaloop.apiserver.core.writes.operations import Operations

MOST: Final = 64
_log: Final = logging.getLogger("deltaloop.apiserver")


async def collect_garbage(operations: Operations, signal: ChangeSignal, *, stamps: Stamps) -> None:
    """Work until the server stops.

    Cancellation leaves garbage where it is.
    """
    collector = GarbageCollector(operations)
    with signal.subscribe() as changed:
        while not signal.closed:
            changed.clear()
            collected = collector.run(stamps=stamps, most=MOST)
            for place, reason in collected.refused:
                # Such as an object that was stored before a rule was there; its next change tries again.
                _log.warning(
                    "garbage collection was refused",
                    extra={"resource": place.resource, "key": place.key, "reason": reason},
                )
            if collected.wrote:
                signal.publish()
            if collected.more:
                await asyncio.sleep(0)  # others have their turn before the next
            else:
                await changed.wait()
