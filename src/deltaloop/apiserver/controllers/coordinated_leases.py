"""Elects the holders of Leases from LeaseCandidates."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from deltaloop.api.status import ApiError
from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.core.controllers.coordinated_leases import LeaseElections
from deltaloop.apiserver.core.stamp import Stamps
from deltaloop.apiserver.core.writes.operations import Operations

_log: Final = logging.getLogger("deltaloop.apiserver")


async def elect_holders(operations: Operations, signal: ChangeSignal, *, stamps: Stamps) -> None:
    """Work until the server stops.

    Cancellation leaves an election where it is; the next server goes on with it.
    """
    elections = LeaseElections(operations)
    with signal.subscribe() as changed:
        while not signal.closed:
            changed.clear()
            wait: float | None = None
            try:
                now = stamps()
                decided = elections.run(stamp=now)
                if decided.next_due is not None:
                    wait = max(0.0, decided.next_due - now.now)
                if decided.wrote:
                    signal.publish()
            except ApiError as error:
                # Such as a namespace that is being deleted; the next change tries again.
                _log.warning("an election was refused", extra={"reason": error.status.message})
            try:
                async with asyncio.timeout(wait):
                    await changed.wait()
            except TimeoutError:
                continue
