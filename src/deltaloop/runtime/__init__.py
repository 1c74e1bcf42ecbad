"""Controllers as functions, and the manager that runs them.

Handlers add keys to work queues. Workers take the keys while this process leads. Reconcile functions read from caches
and write through a guarded client. Names are imported on first use to save start time and memory.
"""

from deltaloop._internal.lazy_names import lazy_names
from deltaloop.runtime.controller import controller as controller
from deltaloop.runtime.enqueue import enqueue as enqueue

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
