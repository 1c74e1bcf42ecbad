"""Threaded programs use the same machinery through one event loop that runs in the background.

This room owns the thread with the loop, the ways to wait from other threads for what happens on it, and the threads in
which handlers are called. ``connect``, ``Client``, ``InformerFactory``, ``Informer`` and ``Registration`` mirror what
the façade has under these names, without ``async``. All else joins by ``BackgroundLoop.enter`` (any async context
manager) and ``BackgroundLoop.run``.
"""

from deltaloop.blocking.background_loop import BackgroundLoop as BackgroundLoop
from deltaloop.blocking.client import Client as Client
from deltaloop.blocking.connect import connect as connect
from deltaloop.blocking.factory import InformerFactory as InformerFactory
from deltaloop.blocking.informer import Informer as Informer
from deltaloop.blocking.informer import Registration as Registration
from deltaloop.blocking.informer import SharedInformer as SharedInformer
from deltaloop.blocking.queue import BlockingQueue as BlockingQueue
