"""Test kit: virtual time, a pytest plugin, a harness that crashes programs, and a network that fails on demand.

Names are imported on first use, because pytest loads the plugin in every project that has deltaloop installed.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
