"""All errors of deltaloop: each is a ``DeltaloopError`` with fields and a message that names the fault and the remedy.

Errors are imported on first use, with the package that raises them.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
