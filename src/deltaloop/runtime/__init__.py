"""Controllers as functions, and the manager that runs them; names are imported on first use."""

from deltaloop._internal.lazy_names import lazy_names
from deltaloop.runtime.controller import controller as controller
from deltaloop.runtime.enqueue import enqueue as enqueue

__getattr__, __dir__ = lazy_names(__name__, __file__)
