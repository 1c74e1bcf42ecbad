"""Blocking access to a work queue from threads.

Calls that do not wait (``add``, ``done``, ``add_after``, ``forget`` and so on) are thread-safe in the queue itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar, final

from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.workqueue import Work, WorkQueue
from deltaloop.workqueue.errors import QueueShutDownError

K = TypeVar("K", bound=Hashable)


@final
class BlockingQueue(Generic[K]):
    """Work queue for threads.

    Use ``for work in queue:`` and ``with work:``. The loop ends when the queue is shut down and empty. Any number of
    threads can take work, and at most one of them has an item at a time.
    """

    def __init__(self, queue: WorkQueue[K], *, loop: BackgroundLoop) -> None:
        """Wrap a queue. Usually, you call ``InformerFactory.queue`` instead."""
        self._queue = queue
        self._loop = loop

    @property
    def queue(self) -> WorkQueue[K]:
        """Wrapped queue, for all calls that do not wait."""
        return self._queue

    def add(self, item: K, *, trigger: object | None = None, priority: int = 0) -> None:
        """Add ``item`` to the queue. See ``WorkQueue.add``.

        Raises:
            BackgroundLoopError: If the loop is not running, because no worker would get the item.
        """
        self._loop.check()
        self._queue.add(item, trigger=trigger, priority=priority)

    def get(self, timeout: float | None = None) -> K:
        """Wait for the next item and take it. The caller must call ``done``.

        An interruption such as Ctrl-C loses no item.

        Args:
            timeout: Timeout in seconds. None waits without a timeout.

        Raises:
            TimeoutError: If the timeout expires.
            QueueShutDownError: If the queue is shut down and empty.
            BackgroundLoopError: If the loop is not running, or is closed while waiting.
        """
        # queue.get() does not suffice, because only Work can be put back unchanged if the caller stops waiting.
        work = self.get_work(timeout)
        work.leave_to_caller()
        return work.key

    def get_work(self, timeout: float | None = None) -> Work[K]:
        """Wait for the next item and take it as a context manager. Otherwise like ``get``.

        ``timeout`` is in seconds. None waits without a timeout.
        """
        return self._loop.run_keeping(self._queue.get_work(timeout), timeout=None, unwanted=_put_back)

    def done(self, item: K) -> None:
        """Mark the work on ``item`` as done, once per ``get``. Do not call it after ``with work``.

        Raises:
            ValueError: If the item is not being processed.
            BackgroundLoopError: If the loop is not running.
        """
        self._loop.check()
        self._queue.done(item)

    def __iter__(self) -> Iterator[Work[K]]:
        """Iterate over work until the queue is shut down and empty."""
        while True:
            try:
                work = self.get_work()
            except QueueShutDownError:
                return
            yield work
            del work  # otherwise the generator keeps it alive while it waits for the next item

    def shut_down(self) -> None:
        """Accept no more items. See ``WorkQueue.shut_down``."""
        self._loop.check()
        self._queue.shut_down()

    def shut_down_with_drain(self, timeout: float | None = None) -> None:
        """Accept no more items, and wait until all items are done.

        Raises:
            TimeoutError: If it takes longer than ``timeout`` seconds. The queue stays shut down, and workers continue.
            BackgroundLoopError: If the loop is not running, or is closed while waiting.
        """
        self._loop.run(self._queue.shut_down_with_drain(), timeout=timeout)

    def __len__(self) -> int:
        return len(self._queue)

    def __repr__(self) -> str:
        return f"<BlockingQueue of {self._queue!r}>"


def _put_back(work: Work[K]) -> None:
    work.put_back()
