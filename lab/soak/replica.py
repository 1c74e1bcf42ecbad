"""One replica in a process of its own: ``python -m lab.soak.replica KUBECONFIG TOKEN NAME LEASE PERIOD LEAK``.

Beside its manager it has informers with handlers that stay, and it is visited now and then: a visit makes a client with
another user's token, an informer and a handler, uses them, and closes them again.
"""

from __future__ import annotations

import asyncio
import logging
import sys

from deltaloop.api.resource import Resource
from deltaloop.cache import Informer, InformerFactory
from deltaloop.client import Client, connect
from deltaloop.errors import DeltaloopError
from deltaloop.events import EventRecorder
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.runtime import Manager
from lab.soak.counts import by_type, counts
from lab.soak.orders import obey
from lab.soak.visits import Visits
from lab.soak.work import EVENTS, PLAN, Work


class Replica:
    """What the orders are about."""

    def __init__(self, work: Work, manager: Manager, informer: Informer[Resource], visits: Visits) -> None:
        """Keep them."""
        self._work = work
        self._manager = manager
        self._informer = informer
        self._visits = visits

    def _queues(self) -> dict[str, int]:
        shown = [loop.queue.statistics() for loop in self._manager.loops]
        return {
            "queued": sum(each.queued for each in shown),
            "processing": sum(each.processing for each in shown),
            "delayed": sum(each.delayed for each in shown),
            "failing": sum(each.failing for each in shown),
            "parked": sum(each.parked for each in shown),
        }

    async def sample(self) -> object:
        """Count everything."""
        return {
            **counts(asyncio.get_running_loop()),
            **self._queues(),
            "cached": len(self._informer.lister().list()),
            "reconciles": self._work.reconciles,
            "failures": self._work.failures,
            "events": self._visits.events,
            "leading": int(self._manager.leadership.value == "leading"),
        }

    async def idle(self) -> object:
        """Tell whether nothing is to be done at this moment; a standby's queue waits for its turn."""
        queues = self._queues()
        waiting = queues["queued"] or queues["failing"]
        return not (queues["processing"] or (waiting and await self.leading()))

    async def leading(self) -> object:
        """Tell whether it leads."""
        return self._manager.leadership.value == "leading"

    async def types(self) -> object:
        """Count by type."""
        return by_type(asyncio.get_running_loop())

    async def visit(self) -> object:
        """Let a visitor come; return what went wrong."""
        try:
            await self._visits.visit()
        except (DeltaloopError, TimeoutError) as error:
            return type(error).__name__
        return ""


async def main(kubeconfig: str, visitor: str, name: str, lease: str, period: str, leak: str = "") -> None:
    """Run until standard input ends."""
    duration, deadline, retry = (float(part) for part in lease.split(","))
    work = Work(period=float(period), leak=leak)
    async with connect(kubeconfig=kubeconfig) as client, Client(client.config) as lock_client:
        recorder = EventRecorder(client, component="soak", options=EVENTS)
        config = LeaderElectionConfig(lease_duration=duration, renew_deadline=deadline, retry_period=retry)
        lock = LeaseLock(lock_client, namespace="default", name="soak", identity=name)
        elector = LeaderElector(lock, config, client=client)
        manager = Manager(client, work.controllers(), elector=elector, recorder=recorder)
        async with recorder, InformerFactory(client) as factory:
            visits = Visits(factory, connect=lambda: connect(kubeconfig=visitor), leak=leak)
            factory.start()
            running = asyncio.create_task(manager.run())
            try:
                await factory.wait_for_sync(timeout=60.0)
                replica = Replica(work, manager, factory.informer(PLAN), visits)
                orders = [replica.sample, replica.idle, replica.leading, replica.types, replica.visit]
                await obey({order.__name__: order for order in orders})
            finally:
                manager.stop()
                await running


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    asyncio.run(main(*sys.argv[1:]))
