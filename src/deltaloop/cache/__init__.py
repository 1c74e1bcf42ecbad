"""Informer cache: list and watch objects, keep them locally, and call handlers when they change.

    Reflector ──▶ Queue ──▶ Controller ──▶ Indexer
                                          └──▶ handlers, each with its own buffer and task

To follow an event, read ``reflector.py``, ``real_fifo.py``, ``controller.py``, ``informer.py``, ``store.py``,
``shared_processor.py`` and ``listener.py``. Their decisions are in ``core``. Names are imported on first use, so that
programs load only the modules that they need.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
