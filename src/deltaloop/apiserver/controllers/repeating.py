"""A controller that looks at the whole store after each change."""

from __future__ import annotations

import asyncio
from typing import Protocol

from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.core.stamp import Stamps
from deltaloop.apiserver.core.writes.operations import Operations


class Step(Protocol):
    """Does a part of what is to be done now, and tells whether anything was written."""

    def __call__(self, operations: Operations, *, stamps: Stamps) -> bool:
        """Do it."""
        ...


async def repeat(step: Step, operations: Operations, signal: ChangeSignal, *, stamps: Stamps) -> None:
    """Work until the server stops.

    Cancellation leaves things as they are.
    """
    with signal.subscribe() as changed:
        while not signal.closed:
            changed.clear()
            if step(operations, stamps=stamps):
                signal.publish()
                await asyncio.sleep(0)  # a part of them is done; others have their turn before the next
            else:
                await changed.wait()
