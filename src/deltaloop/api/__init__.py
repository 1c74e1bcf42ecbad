"""What an object is: resource types, resources, keys, versions, selectors, Status errors, triggers.

This room is ground: it imports no other room, does no I/O and knows no clock. Everything that names, decodes, compares
or selects a Kubernetes object lives here, for the client's side and the embedded server's side alike.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
