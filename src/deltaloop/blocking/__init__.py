"""API for threads, built on an event loop in a background thread.

``connect``, ``Client``, ``InformerFactory``, ``Informer`` and ``Registration`` mirror the ``deltaloop`` names without
``async``. For other parts of deltaloop, use ``BackgroundLoop.enter`` (any async context manager) and
``BackgroundLoop.run``.
"""

from deltaloop.blocking.background_loop import BackgroundLoop as BackgroundLoop
from deltaloop.blocking.client import Client as Client
from deltaloop.blocking.client import connect as connect
from deltaloop.blocking.factory import Informer as Informer
from deltaloop.blocking.factory import InformerFactory as InformerFactory
from deltaloop.blocking.factory import Registration as Registration
from deltaloop.blocking.factory import SharedInformer as SharedInformer
from deltaloop.blocking.queue import BlockingQueue as BlockingQueue
