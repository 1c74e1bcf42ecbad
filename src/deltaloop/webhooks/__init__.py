"""Admission and conversion webhooks: functions that validate, change and convert objects for the API server.

Names are imported on first use. ``__init__.pyi`` lists them.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
