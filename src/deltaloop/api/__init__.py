"""Kubernetes objects: resource types, resources, keys, versions, selectors, Status errors and triggers.

The package performs no I/O and reads no clock. The client and the embedded server share it.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
