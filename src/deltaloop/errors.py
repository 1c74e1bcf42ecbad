"""All errors of deltaloop by name: each is a ``DeltaloopError``, has fields, and says what is wrong and what to do.

An error is imported when it is first used, with the room that raises it.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
