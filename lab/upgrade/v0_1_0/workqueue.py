"""A controller of the plainest kind: an informer puts keys into a work queue, workers take them out.

The informer keeps a local store of Pods up to date and tells of each change; what it tells is reduced to the object's
key, because by the time that a worker looks the object may be another one, or gone. The queue makes many changes of one
Pod one piece of work, gives a key to one worker at a time, and spaces out what fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import deltaloop as dl

logger = logging.getLogger("workqueue_example")

MOST_RETRIES = 5


class Controller:
    """Tells of each Pod of a namespace what it is; a stand-in for what a controller would do with it."""

    def __init__(self, client: dl.Client, namespace: str, tell: Callable[[str], object]) -> None:
        """Watch nothing yet.

        Args:
            client: Client of the cluster.
            namespace: Whose Pods.
            tell: The business: called with a line for each Pod; what it raises is a failure of that Pod.
        """
        self._tell = tell
        self.queue: dl.RateLimitingQueue[str] = dl.RateLimitingQueue(name="pods")
        handler = dl.HandlerFuncs[dl.Resource](
            on_add=self._enqueue, on_update=lambda _, new: self._enqueue(new), on_delete=self._enqueue
        )
        source = dl.cache.ListWatch(client, dl.kinds.POD, namespace=namespace)
        self.store, self._informer = dl.cache.new_indexer_informer(source, dl.kinds.POD, handler=handler)

    def _enqueue(self, pod: dl.Resource) -> None:
        self.queue.add(dl.cache.meta_namespace_key(pod))

    async def run(self, workers: int) -> None:
        """Work until cancelled: fill the store first, so that no key is worked on that only seems to be missing."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run())
            try:
                if not await dl.cache.wait_for_cache_sync(self._informer, timeout=30):
                    raise TimeoutError("the store did not fill in time")
                for _ in range(workers):
                    group.create_task(self._work())
                await asyncio.get_running_loop().create_future()
            finally:
                self.queue.shut_down()

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except dl.errors.QueueShutDownError:
                return
            try:
                self._sync(key)
            except Exception as error:  # noqa: BLE001 - one Pod's failure is nobody else's
                self._failed(key, error)
            else:
                # From now on its failures count from zero again.
                self.queue.forget(key)
            finally:
                # The same key may be given out again.
                self.queue.done(key)

    def _sync(self, key: str) -> None:
        pod = self.store.get_by_key(key)
        if pod is None:
            self._tell(f"Pod {key} does not exist anymore")
        else:
            self._tell(f"Sync/Add/Update for Pod {pod.name}")

    def _failed(self, key: str, error: Exception) -> None:
        if self.queue.num_requeues(key) < MOST_RETRIES:
            logger.info("a pod is tried again", extra={"key": key, "error": type(error).__name__})
            self.queue.add_rate_limited(key)
            return
        self.queue.forget(key)
        logger.error("a pod is given up", extra={"key": key, "error": type(error).__name__})
