"""Waiting for a work queue from threads.

A queue's calls that do not wait (``add``, ``done``, ``add_after``, ``forget``, ...) may be made from any thread anyway;
this adds the ones that wait.
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
    """A work queue as threads use it.

    ``for work in queue:`` then ``with work:``; the loop over work ends when the queue is shut down and empty. Any
    number of threads may take work; no item is with two of them.
    """

    def __init__(self, queue: WorkQueue[K], *, loop: BackgroundLoop) -> None:
        """Take the queue and the loop on which waiting takes place; ``BackgroundLoop.queue`` does it."""
        self._queue = queue
        self._loop = loop

    @property
    def queue(self) -> WorkQueue[K]:
        """The queue itself, for all calls that do not wait."""
        return self._queue

    def add(self, item: K, *, trigger: object | None = None, priority: int = 0) -> None:
        """Mark ``item`` as needing work; as ``WorkQueue.add``.

        Raises:
            BackgroundLoopError: If the loop does not run, so that nobody would hear of it.
        """
        self._loop.check()
        self._queue.add(item, trigger=trigger, priority=priority)

    def get(self, timeout: float | None = None) -> K:
        """Wait for the next item and take it; the caller owes a ``done``.

        A wait that is interrupted, by Ctrl-C say, loses no item.

        Args:
            timeout: Longest wait in seconds; None waits without end.

        Raises:
            TimeoutError: If none came in time.
            QueueShutDownError: If the queue is shut down and empty.
            BackgroundLoopError: If the loop does not run, or is closed meanwhile.
        """
        # Not the queue's own get: only a run that is named can be put back as what it was, when nobody wants it.
        work = self.get_work(timeout)
        work.leave_to_caller()
        return work.key

    def get_work(self, timeout: float | None = None) -> Work[K]:
        """Wait for the next item and take it, as a context manager; otherwise as ``get``.

        ``timeout`` is in seconds; None waits for ever.
        """
        return self._loop.run_keeping(self._queue.get_work(timeout), timeout=None, unwanted=_put_back)

    def done(self, item: K) -> None:
        """Say that the work on ``item`` has ended; once for each ``get``, not after ``with work``.

        Raises:
            ValueError: If nobody works on it.
            BackgroundLoopError: If the loop does not run.
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
            del work  # a generator that holds on to it would keep it alive while it waits for the next one

    def shut_down(self) -> None:
        """Take no more items; as ``WorkQueue.shut_down``."""
        self._loop.check()
        self._queue.shut_down()

    def shut_down_with_drain(self, timeout: float | None = None) -> None:
        """Take no more items, and wait until everything is done.

        Raises:
            TimeoutError: If that took longer than ``timeout`` seconds; the queue stays shut down, and workers go on.
            BackgroundLoopError: If the loop does not run, or is closed meanwhile.
        """
        self._loop.run(self._queue.shut_down_with_drain(), timeout=timeout)

    def __len__(self) -> int:
        return len(self._queue)

    def __repr__(self) -> str:
        return f"<BlockingQueue of {self._queue!r}>"


def _put_back(work: Work[K]) -> None:
    work.put_back()
