"""Empties namespaces that are being deleted, then lets them go. Core: ``core/namespace_cleanup.py``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.core.controllers.namespace_cleanup import clean_up
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.writes.operations import Operations


async def clean_up_namespaces(operations: Operations, signal: ChangeSignal, *, stamp: Callable[[], Stamp]) -> None:
    """Work until the server stops; objects with finalizers hold their namespace until they are gone.

    Cancellation leaves a namespace that is being deleted as it is.
    """
    with signal.subscribe() as changed:
        while not signal.closed:
            changed.clear()
            if clean_up(operations, stamp=stamp()):
                signal.publish()
                await asyncio.sleep(0)  # a part of them is gone; others have their turn before the next
            else:
                await changed.wait()
