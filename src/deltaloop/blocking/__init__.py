"""Threaded programs use the same machinery through one event loop that runs in the background.

This room owns the thread with the loop, the ways to wait from other threads for what happens on it, and the threads in
which handlers are called. ``connect``, ``Client``, ``InformerFactory``, ``Informer`` and ``Registration`` mirror what
the façade has under these names, without ``async``. All else joins by ``BackgroundLoop.enter`` (any async context
manager) and ``BackgroundLoop.run``.
"""

from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.blocking.client import Client
from deltaloop.blocking.connect import connect
from deltaloop.blocking.errors import BackgroundLoopError, HandlerStillRunsError
from deltaloop.blocking.factory import InformerFactory
from deltaloop.blocking.informer import Informer, Registration, SharedInformer
from deltaloop.blocking.queue import BlockingQueue

__all__ = [
    "BackgroundLoop",
    "BackgroundLoopError",
    "BlockingQueue",
    "Client",
    "HandlerStillRunsError",
    "Informer",
    "InformerFactory",
    "Registration",
    "SharedInformer",
    "connect",
]
