"""From caches to reconciles: handlers that queue keys with their triggers, and log output for programs.

This room joins the rooms below it: it makes informer handlers that put keys into work queues. Those rooms do not know
each other.
"""

from deltaloop.runtime.enqueue import Enqueue, enqueue, enqueue_owner
from deltaloop.runtime.logs import configure_logging

__all__ = ["Enqueue", "configure_logging", "enqueue", "enqueue_owner"]
