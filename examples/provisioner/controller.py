"""Volume provisioner that creates a volume for each claim of its storage class.

This controller uses the low-level parts. Event handlers filter claims and add their keys to a queue with rate limiters.
While this process leads, workers take the keys. Each claim has a timeout. The worker calls ``forget`` after a success,
``add_rate_limited`` after a failure, and ``done`` in both cases.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Protocol

import deltaloop as dl

logger = logging.getLogger("provisioner_example")


class Storage(Protocol):
    """Storage system that creates volumes."""

    async def create(self, name: str, size: str) -> str:
        """Create a volume unless it exists, and return its handle."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a provisioner.

    Attributes:
        storage_class: Storage class of the claims.
        driver: Name of the CSI driver in the volumes.
        workers: Number of claims processed at the same time.
        timeout: Timeout of one claim in seconds.
        base_delay: Delay of the first retry in seconds. It doubles with each failure.
        max_delay: Longest delay of a retry in seconds.
        lease: Durations of the leader election.
    """

    storage_class: str
    driver: str = "example.deltaloop.dev"
    workers: int = 4
    timeout: float = 15.0
    base_delay: float = 15.0
    max_delay: float = 1000.0
    lease: dl.LeaderElectionConfig


class Provisioner:
    """Replica of the provisioner."""

    def __init__(self, client: dl.Client, storage: Storage, options: Options, *, identity: str) -> None:
        """Create the queue. Retries have exponential backoff per claim and are limited to ten per second in total."""
        self._client = client
        self._storage = storage
        self._options = options
        self._identity = identity
        self.leads = False
        limiter = dl.workqueue.MaxOfRateLimiter[str](
            dl.workqueue.ItemExponentialFailureRateLimiter(options.base_delay, options.max_delay),
            dl.workqueue.BucketRateLimiter(clock=asyncio.get_running_loop().time, qps=10.0, burst=100),
        )
        self.queue: dl.RateLimitingQueue[str] = dl.RateLimitingQueue(name="claims", rate_limiter=limiter)

    def _enqueue(self, claim: dl.Resource) -> None:
        """Add the claim unless it has a volume or another storage class."""
        if claim["spec"].get("storageClassName") == self._options.storage_class and not claim["spec"].get("volumeName"):
            self.queue.add(claim.key)

    async def run(self) -> None:
        """Keep the cache warm, and process claims while this replica leads, until canceled."""
        options, client = self._options, self._client
        async with dl.InformerFactory(client, namespace=client.namespace) as informers:
            claims = informers.informer(dl.kinds.PERSISTENT_VOLUME_CLAIM)
            claims.add_event_handler(
                dl.HandlerFuncs[dl.Resource](on_add=self._enqueue, on_update=lambda _, new: self._enqueue(new))
            )
            await informers.wait_for_sync(30)
            lock = dl.LeaseLock(client, namespace=client.namespace, name="provisioner", identity=self._identity)
            async for term in dl.LeaderElector(lock, options.lease).terms():
                async with term, asyncio.TaskGroup() as workers:
                    self.leads = True
                    logger.info("leading", extra={"identity": self._identity})
                    try:
                        for _ in range(options.workers):
                            workers.create_task(self._work(claims.lister(), term.client))
                        await asyncio.get_running_loop().create_future()
                    finally:
                        self.leads = False

    async def _work(self, claims: dl.Lister[dl.Resource], client: dl.Client) -> None:
        while True:
            key = await self.queue.get()
            try:
                async with asyncio.timeout(self._options.timeout):
                    await self._provision(claims.find(key), client)
            except asyncio.CancelledError:
                self.queue.add(key)  # for the next term
                raise
            except Exception as error:  # noqa: BLE001 - a failure must not stop the other claims
                logger.info("claim failed, retrying", extra={"key": key, "error": type(error).__name__})
                self.queue.add_rate_limited(key)
            else:
                self.queue.forget(key)
            finally:
                self.queue.done(key)

    async def _provision(self, claim: dl.Resource | None, client: dl.Client) -> None:
        if claim is None or claim.deletion_timestamp is not None:
            return
        # The name is derived from the claim, so a retry by any replica finds the existing volume.
        name = f"pvc-{claim.uid}"
        size = str(claim["spec"]["resources"]["requests"]["storage"])
        handle = await self._storage.create(name, size)
        try:
            await client.create(dl.kinds.PERSISTENT_VOLUME, self._volume(claim, name, size, handle))
        except dl.AlreadyExistsError:
            return
        logger.info("created volume", extra={"key": claim.key, "volume": name})

    def _volume(self, claim: dl.Resource, name: str, size: str, handle: str) -> dict[str, Any]:
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        }
        return {
            "metadata": {"name": name, "labels": {"claim-namespace": claim.namespace}},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": [*claim["spec"]["accessModes"]],
                "claimRef": reference,
                "csi": {"driver": self._options.driver, "volumeHandle": handle},
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": self._options.storage_class,
            },
        }
