"""CPU of a leader's renewals: ``python -m lab.bench.election KUBECONFIG SECONDS`` leads on a server that runs
elsewhere."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import deltaloop as dl

RETRY_PERIOD = 0.05  # forty times as often as by default, to have enough renewals to count


async def main() -> None:
    """Lead for some seconds; print the CPU of one renewal."""
    seconds = float(sys.argv[2])
    config = dl.LeaderElectionConfig(lease_duration=3.0, renew_deadline=2.0, retry_period=RETRY_PERIOD)
    async with dl.connect(kubeconfig=Path(sys.argv[1])) as client:
        lock = dl.LeaseLock(client, namespace="default", name="bench", identity="bench")
        elector = dl.LeaderElector(lock, config)
        async for term in elector.terms():
            async with term:
                print(json.dumps(await renewals(client, seconds)))
            return


async def renewals(client: dl.Client, seconds: float) -> dict[str, float]:
    """Count the versions of the lock while time passes."""
    await asyncio.sleep(0.5)

    async def version() -> int:
        lease = await client.get(dl.kinds.LEASE, "bench", namespace="default")
        return int(lease.metadata.resource_version)

    cpu, began, first = time.process_time(), time.perf_counter(), await version()
    await asyncio.sleep(seconds)
    count = await version() - first
    used, took = time.process_time() - cpu, time.perf_counter() - began
    return {"renewals": count, "seconds": took, "cpu_per_renewal": used / max(1, count)}


if __name__ == "__main__":
    asyncio.run(main())
