"""From caches to reconciles: controllers as functions, and the manager that runs them.

This room joins the rooms below it: handlers put keys into work queues, workers take them while this process leads, and
a reconciler reads from caches and writes through a guarded client. Those rooms do not know each other.
"""

from deltaloop.runtime.caches import Caches as Caches
from deltaloop.runtime.children import AppliedChildren as AppliedChildren
from deltaloop.runtime.children import Children as Children
from deltaloop.runtime.context import Context as Context
from deltaloop.runtime.controller import Controller as Controller
from deltaloop.runtime.controller import controller as controller
from deltaloop.runtime.core.access import Access as Access
from deltaloop.runtime.core.declared_access import UndeclaredAccess as UndeclaredAccess
from deltaloop.runtime.core.hot_loop import HotLoopOptions as HotLoopOptions
from deltaloop.runtime.core.outcomes import Result as Result
from deltaloop.runtime.core.requests import Request as Request
from deltaloop.runtime.enqueue import Enqueue as Enqueue
from deltaloop.runtime.enqueue import enqueue as enqueue
from deltaloop.runtime.enqueue import enqueue_owner as enqueue_owner
from deltaloop.runtime.manager import Manager as Manager
from deltaloop.runtime.manager_options import ManagerOptions as ManagerOptions
from deltaloop.runtime.metrics import ControllerMetrics as ControllerMetrics
from deltaloop.runtime.ownership import set_controller_reference as set_controller_reference
from deltaloop.runtime.ownership import set_owner_reference as set_owner_reference
from deltaloop.runtime.pages import Listen as Listen
from deltaloop.runtime.reconcile_client import ReconcileClient as ReconcileClient
from deltaloop.runtime.status import StatusWriter as StatusWriter
