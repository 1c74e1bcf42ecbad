"""Threaded programs use the same machinery through one event loop that runs in the background.

This room owns the thread with the loop, the ways to wait from other threads for what happens on it, and blocking access
to work queues. All else joins by ``BackgroundLoop.enter`` (any async context manager) and ``BackgroundLoop.run``.
"""

from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.blocking.errors import BackgroundLoopError
from deltaloop.blocking.queue import BlockingQueue

__all__ = ["BackgroundLoop", "BackgroundLoopError", "BlockingQueue"]
