"""From caches to reconciles: controllers as functions, and the manager that runs them.

This room joins the rooms below it: handlers put keys into work queues, workers take them while this process leads, and
a reconciler reads from caches and writes through a guarded client. Those rooms do not know each other.

A name is imported when it is first used: a program pays for what it needs.
"""

from deltaloop._internal.lazy_names import lazy_names
from deltaloop.runtime.controller import controller as controller
from deltaloop.runtime.enqueue import enqueue as enqueue

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
