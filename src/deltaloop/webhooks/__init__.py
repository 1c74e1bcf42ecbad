"""Webhooks served: functions that check, complete and convert objects when the API server asks.

Names are imported when they are first used; they stand in ``__init__.pyi``.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
