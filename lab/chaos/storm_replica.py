"""One replica of the storm in a process of its own: ``python -m lab.chaos.storm_replica URL NAME FOLDER SEED LEASE``.

It ends in good order on SIGTERM, and at once when its standard input ends: when whoever started it is gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from deltaloop.client import Client, ClientConfig
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.runtime import Manager, ManagerOptions
from lab.chaos.storm_journal import Journal
from lab.chaos.storm_load import Report, Storm


def end_with_the_starter() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


async def main(url: str, name: str, folder: str, seed: str, lease: str) -> None:
    duration, deadline, period = (float(part) for part in lease.split(","))
    journal = Journal(Path(folder) / f"{name}.journal")
    storm = Storm(Report(0), seed=int(seed), journal=journal)
    async with Client(ClientConfig(server=url, namespace="default")) as client:
        lock = LeaseLock(client, namespace="default", name="storm", identity=name)
        config = LeaderElectionConfig(lease_duration=duration, renew_deadline=deadline, retry_period=period)
        elector = LeaderElector(lock, config, client=client)
        options = ManagerOptions(namespace="default", preflight=False)
        await Manager(client, [storm.controller()], elector=elector, options=options).run(handle_signals=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.CRITICAL)
    threading.Thread(target=end_with_the_starter, daemon=True).start()
    asyncio.run(main(*sys.argv[1:]))
