"""From caches to reconciles: controllers as functions, and the manager that runs them.

This room joins the rooms below it: handlers put keys into work queues, workers take them while this process leads, and
a reconciler reads from caches and writes through a guarded client. Those rooms do not know each other.
"""

from deltaloop.api.logs import configure_logging
from deltaloop.runtime.context import Context
from deltaloop.runtime.controller import Controller, controller
from deltaloop.runtime.core.access import Access, PreflightError
from deltaloop.runtime.core.hot_loop import HotLoopOptions
from deltaloop.runtime.core.outcomes import InvalidResultError, ReconcileTimeoutError, Result
from deltaloop.runtime.core.predicates import (
    And,
    AnnotationsChanged,
    Change,
    GenerationChanged,
    HasLabels,
    LabelsChanged,
    Not,
    Or,
    PathChanged,
    Predicate,
    ResourceVersionChanged,
    When,
    Where,
)
from deltaloop.runtime.core.requests import Request
from deltaloop.runtime.enqueue import Enqueue, enqueue, enqueue_owner
from deltaloop.runtime.errors import (
    HealthServerError,
    InvalidControllerError,
    ReconcileCancelledError,
    ReconcileStoppedError,
    ShutdownTimeoutError,
)
from deltaloop.runtime.health_server import Listen
from deltaloop.runtime.manager import Manager
from deltaloop.runtime.manager_options import ManagerOptions
from deltaloop.runtime.metrics import ControllerMetrics
from deltaloop.runtime.ownership import (
    AlreadyOwnedError,
    add_finalizer,
    remove_finalizer,
    set_controller_reference,
    set_owner_reference,
)
from deltaloop.runtime.reconcile_client import ReconcileClient, Written
from deltaloop.runtime.sources import Channel, Every, Source, Watch

__all__ = [
    "Access",
    "AlreadyOwnedError",
    "And",
    "AnnotationsChanged",
    "Change",
    "Channel",
    "Context",
    "Controller",
    "ControllerMetrics",
    "Enqueue",
    "Every",
    "GenerationChanged",
    "HasLabels",
    "HealthServerError",
    "HotLoopOptions",
    "InvalidControllerError",
    "InvalidResultError",
    "LabelsChanged",
    "Listen",
    "Manager",
    "ManagerOptions",
    "Not",
    "Or",
    "PathChanged",
    "Predicate",
    "PreflightError",
    "ReconcileCancelledError",
    "ReconcileClient",
    "ReconcileStoppedError",
    "ReconcileTimeoutError",
    "Request",
    "ResourceVersionChanged",
    "Result",
    "ShutdownTimeoutError",
    "Source",
    "Watch",
    "When",
    "Where",
    "Written",
    "add_finalizer",
    "configure_logging",
    "controller",
    "enqueue",
    "enqueue_owner",
    "remove_finalizer",
    "set_controller_reference",
    "set_owner_reference",
]
