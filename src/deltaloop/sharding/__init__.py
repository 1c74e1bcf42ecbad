"""Several programs that share the keys of their controllers.

``core`` contains the map of owners, the steps of a hand-over, the observation of members, and the cuts of the hash
space.
Names are imported lazily.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
