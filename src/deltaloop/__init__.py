"""The controller machinery of Kubernetes for Python: informers, work queues, leader election, events.

Import it as ``dl``: what a controller's author writes is here, and nothing else is defined here. What is below has the
rest: ``cache``, ``workqueue``, ``client``, ``leaderelection``, ``events``, ``runtime``, ``api``; ``predicates``,
``sources``, ``wait`` and ``errors`` are names that belong together; ``blocking`` has the same for threaded programs.
``apiserver``, ``metrics`` and ``testing`` are imported by themselves.

A name is imported when it is first used, so that a program pays for the rooms that it uses: the command line answers a
Ctrl-C from its first moment on, and a test run that only has deltaloop installed does not wait for it. The names stand
in ``__init__.pyi``, for type checkers and for this alike.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
