"""Informer cache: list and watch objects, keep them locally, and call handlers when they change.

    Reflector ──▶ Queue ──▶ Controller ──▶ Indexer
                                          └──▶ handlers, each with its own buffer and task

Names are imported on first use, so that programs load only the modules that they need.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
