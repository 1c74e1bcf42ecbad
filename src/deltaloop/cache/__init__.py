"""The informer cache: what the server has, kept here, with handlers that are told of changes.

    Reflector ──▶ Queue ──▶ Controller ──▶ Indexer
                                          └──▶ handlers, each with its own buffer and task

This room owns listing and watching without end (``Reflector``), the queue of deltas, the store with indexes,
informers with their handlers, the factory that shares them, and listers. It asks the world for one thing: a
``ListerWatcher``. It knows objects as ``Resource`` and hands out the class of their ``ResourceType`` where there is
one.

Follow one event: ``reflector.py`` (core/reflector/) → ``real_fifo.py`` (core/real_fifo.py) → ``controller.py`` →
``informer.py`` (core/process_deltas.py) → ``store.py`` (core/store.py), and by way of ``shared_processor.py`` to each
``listener.py`` (core/notification_buffer.py, core/sync_tracker.py).

A name is imported when it is first used: a program pays for what it needs.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
