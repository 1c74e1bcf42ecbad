"""Plans: the changes that a version of a program would make to the objects of a cluster, found without the cluster."""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
