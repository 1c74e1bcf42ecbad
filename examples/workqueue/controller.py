"""Minimal controller: an informer adds keys to a work queue, and workers take them.

The informer keeps a local store of Pods up to date. Its handlers add only the key of a changed Pod, because the Pod can
change again or be deleted before a worker takes the key. The queue merges several changes of one Pod, gives a key to
one worker at a time, and delays retries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import deltaloop as dl

logger = logging.getLogger("workqueue_example")

MOST_RETRIES = 5


class Controller:
    """Controller that reports each Pod of a namespace. A real controller would do its work instead."""

    def __init__(self, client: dl.Client, namespace: str, report: Callable[[str], object]) -> None:
        """Create the controller without starting its informer.

        Args:
            client: Client of the cluster.
            namespace: Namespace of the Pods.
            report: Function called with a line for each Pod. If it raises, the Pod is retried.
        """
        self._report = report
        self.queue: dl.RateLimitingQueue[str] = dl.RateLimitingQueue(name="pods")
        handler = dl.HandlerFuncs[dl.Resource](
            on_add=self._enqueue, on_update=lambda _, new: self._enqueue(new), on_delete=self._enqueue
        )
        source = dl.cache.ListWatch(client, dl.kinds.POD, namespace=namespace)
        self.store, self._informer = dl.cache.new_indexer_informer(source, dl.kinds.POD, handler=handler)

    def _enqueue(self, pod: dl.Resource) -> None:
        self.queue.add(dl.cache.meta_namespace_key(pod))

    async def run(self, workers: int) -> None:
        """Run until canceled. Workers start after the sync, because earlier the store can miss existing Pods."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run())
            try:
                if not await dl.cache.wait_for_cache_sync(self._informer, timeout=30):
                    raise TimeoutError("the store was not synced in time")
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
            except Exception as error:  # noqa: BLE001 - a failure must not stop the other Pods
                self._failed(key, error)
            else:
                # The next failure starts with the shortest delay again.
                self.queue.forget(key)
            finally:
                # Now the queue can give the key to a worker again.
                self.queue.done(key)

    def _sync(self, key: str) -> None:
        pod = self.store.get_by_key(key)
        if pod is None:
            self._report(f"Pod {key} does not exist anymore")
        else:
            self._report(f"Sync/Add/Update for Pod {pod.name}")

    def _failed(self, key: str, error: Exception) -> None:
        if self.queue.num_requeues(key) < MOST_RETRIES:
            logger.info("pod failed, retrying", extra={"key": key, "error": type(error).__name__})
            self.queue.add_rate_limited(key)
            return
        self.queue.forget(key)
        logger.error("pod failed too often, giving up", extra={"key": key, "error": type(error).__name__})
