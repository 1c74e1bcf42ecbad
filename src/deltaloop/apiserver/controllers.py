"""Controllers of the controller manager that run next to the embedded server on request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Final, Protocol

from deltaloop.api.status import ApiError
from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.core.write_context import Moments
from deltaloop.apiserver.core.writes.server_state import ServerState

MOST: Final = 16
"""Number of small objects that the garbage collector examines between two iterations of the event loop."""
_log: Final = logging.getLogger("deltaloop.apiserver")


class RunController(Protocol):
    """Controller of the server, which runs until the server stops. Cancellation is safe."""

    def __call__(
        self, state: ServerState, signal: ChangeSignal, *, moments: Moments
    ) -> Coroutine[None, None, None]: ...


class Step(Protocol):
    """Function that does a part of the pending work, and returns whether it wrote an object or has more work."""

    def __call__(self, state: ServerState, *, moments: Moments) -> bool: ...


async def repeat(step: Step, after: str, state: ServerState, signal: ChangeSignal, *, moments: Moments) -> None:
    """Run a step at the start, and again after changes as in ``ChangeSignal.subscribe``."""
    with signal.subscribe(after) as changed:
        while not signal.closed:
            changed.clear()
            if step(state, moments=moments):
                signal.publish()
                await asyncio.sleep(0)  # work is left, so yield to other tasks first
            else:
                await changed.wait()


async def collect_garbage(state: ServerState, signal: ChangeSignal, *, moments: Moments) -> None:
    """Delete objects whose owners are gone, and complete foreground and orphaning deletes."""
    from deltaloop.apiserver.core.controllers.garbage import GarbageCollector

    collector = GarbageCollector(state, moments)
    with signal.subscribe() as changed:
        while not signal.closed:
            changed.clear()
            collected = collector.run(most=MOST)
            for place, reason in collected.refused:
                # For example, an object may violate a rule that was added later. Its next change triggers another
                # attempt.
                _log.warning(
                    "garbage collection request rejected",
                    extra={"resource": place.resource, "key": place.key, "reason": reason},
                )
            if collected.wrote:
                signal.publish()
            if collected.more:
                await asyncio.sleep(0)  # yield to other tasks
            else:
                await changed.wait()


async def elect_holders(state: ServerState, signal: ChangeSignal, *, moments: Moments) -> None:
    from deltaloop.apiserver.core.controllers.coordinated_leases import LeaseElections

    elections = LeaseElections(state)
    with signal.subscribe() as changed:
        while not signal.closed:
            changed.clear()
            wait: float | None = None
            try:
                now = moments()
                decided = elections.run(moment=now)
                if decided.next_due is not None:
                    wait = max(0.0, decided.next_due - now.now)
                if decided.wrote:
                    signal.publish()
            except ApiError as error:
                # For example, the namespace may be terminating. The next change triggers another attempt.
                _log.warning("election request rejected", extra={"reason": error.status.message})
            try:
                async with asyncio.timeout(wait):
                    await changed.wait()
            except TimeoutError:
                continue
