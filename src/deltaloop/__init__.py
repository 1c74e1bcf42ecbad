"""Kubernetes controllers in Python: informers, work queues, leader election, events.

Import it as ``dl``; it has the names that authors of controllers use. The packages below it have the rest: ``cache``,
``workqueue``, ``client``, ``leaderelection``, ``events``, ``runtime``, ``api``. ``predicates``, ``sources``, ``wait``
and ``errors`` group related names, and ``blocking`` is the variant for threaded programs. Import ``apiserver``,
``metrics`` and ``testing`` separately.

Names are imported on first use, so that programs load only the packages that they use. ``__init__.pyi`` lists them, for
type checkers and for the import.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
