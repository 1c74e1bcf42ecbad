"""A volume provisioner: makes a volume for each claim of its class, while it leads, as external provisioners do.

The life of a controller, by hand: the queue is declared with its limiters, handlers put in what passes a filter, and
once this process leads, N workers take claims out. Each claim has a time limit. After a success it is forgotten, after
a failure it is given to the limiters, and in either case it is done.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Protocol

import deltaloop as dl

logger = logging.getLogger("provisioner_example")


class Storage(Protocol):
    """Whatever makes volumes."""

    async def make(self, name: str, size: str) -> str:
        """Make a volume, or find the one that there is of that name; return its handle."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a provisioner works.

    Attributes:
        storage_class: Whose claims.
        driver: Name of the driver in the volumes.
        workers: Claims at a time.
        timeout: Seconds that one claim may take.
        base_delay: Seconds until a claim is tried again, doubled with each failure.
        max_delay: The longest that it becomes.
        lease: Times of the leader election.
    """

    storage_class: str
    driver: str = "example.deltaloop.dev"
    workers: int = 4
    timeout: float = 15.0
    base_delay: float = 15.0
    max_delay: float = 1000.0
    lease: dl.LeaderElectionConfig


class Provisioner:
    """One replica."""

    def __init__(self, client: dl.Client, storage: Storage, options: Options, *, identity: str) -> None:
        """Declare the queue: a claim's own back-off, and ten a second for all together, whichever is longer."""
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
        """Filter before the queue: what is not ours, or has a volume, costs nothing there."""
        if claim["spec"].get("storageClassName") == self._options.storage_class and not claim["spec"].get("volumeName"):
            self.queue.add(claim.key)

    async def run(self) -> None:
        """Keep the cache warm, contend, and work while leading; until cancelled."""
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
                self.queue.add(key)  # for the next leader, or for this process when it leads again
                raise
            except Exception as error:  # noqa: BLE001 - one claim's failure is nobody else's
                logger.info("a claim is tried again", extra={"key": key, "error": type(error).__name__})
                self.queue.add_rate_limited(key)
            else:
                self.queue.forget(key)
            finally:
                self.queue.done(key)

    async def _provision(self, claim: dl.Resource | None, client: dl.Client) -> None:
        if claim is None or claim.deletion_timestamp is not None:
            return
        # The name follows from the claim, so that a second try, also of another replica, finds what the first made.
        name = f"pvc-{claim.uid}"
        size = str(claim["spec"]["resources"]["requests"]["storage"])
        handle = await self._storage.make(name, size)
        try:
            await client.create(dl.kinds.PERSISTENT_VOLUME, self._volume(claim, name, size, handle))
        except dl.AlreadyExistsError:
            return
        logger.info("made a volume", extra={"key": claim.key, "volume": name})

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
