"""Leader election: at most one replica works at a time, and another replica takes over when it fails.

A leader that cannot renew its lease stops before another candidate can lead. Names are imported lazily.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
