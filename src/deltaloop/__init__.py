"""The controller machinery of Kubernetes for Python: informers, work queues, leader election, events.

Import it as ``dl``: what a controller needs is here, and nothing else is defined here. The rooms below hold the rest
under the same names: ``cache``, ``workqueue``, ``client``, ``leaderelection``, ``events``, ``runtime``. ``blocking``
has the same for threaded programs. ``apiserver`` and ``testing`` need extras and are not reached from here.

A name is imported when it is first used, so that a program pays for the rooms that it uses: the command line answers a
Ctrl-C from its first moment on, and a test run that only has deltaloop installed does not wait for it. ``__init__.pyi``
says the same to type checkers; a test holds the two together.
"""

# pyright: reportUnsupportedDunderAll=false

from importlib import import_module
from typing import Any

_HOMES = {
    "deltaloop.api.errors": (
        "InvalidInputError",
        "InvalidKeyError",
        "InvalidPathError",
        "InvalidResourceVersionError",
        "InvalidSelectorError",
        "MalformedObjectError",
        "MissingExtraError",
        "UnknownResourceError",
    ),
    "deltaloop.api.keys": (
        "ExplicitKey",
        "ObjectName",
        "meta_namespace_key",
        "split_meta_namespace_key",
    ),
    "deltaloop.api.list_options": ("ListOptions",),
    "deltaloop.api.managed_fields": ("strip_managed_fields",),
    "deltaloop.api.path": (
        "Path",
        "path",
    ),
    "deltaloop.api.redaction": (
        "SecretText",
        "redact",
    ),
    "deltaloop.api.references": (
        "ObjectReference",
        "Trigger",
        "controller_reference",
        "reference_to",
    ),
    "deltaloop.api.resource": (
        "ObjectMeta",
        "OwnerReference",
        "Resource",
    ),
    "deltaloop.api.resource_type": (
        "ResourceType",
        "resource_type",
    ),
    "deltaloop.api.resource_version": ("compare_resource_versions",),
    "deltaloop.api.selectors": (
        "FieldSelector",
        "LabelSelector",
    ),
    "deltaloop.api.status": (
        "AlreadyExistsError",
        "ApiError",
        "BadRequestError",
        "ConflictError",
        "ExpiredError",
        "ForbiddenError",
        "GoneError",
        "InternalServerError",
        "InvalidError",
        "MethodNotAllowedError",
        "NotAcceptableError",
        "NotFoundError",
        "RequestEntityTooLargeError",
        "ServerTimeoutError",
        "ServiceUnavailableError",
        "Status",
        "TooManyRequestsError",
        "UnauthorizedError",
        "UnsupportedMediaTypeError",
    ),
    "deltaloop.api.watch_event": (
        "EventType",
        "MalformedEventError",
        "WatchEvent",
    ),
    "deltaloop.api.yaml_reader": (
        "read_yaml",
        "read_yaml_documents",
    ),
    "deltaloop.blocking": (
        "BackgroundLoop",
        "BackgroundLoopError",
    ),
    "deltaloop.cache": (
        "BufferPolicy",
        "CacheSyncError",
        "DeletedFinalStateUnknown",
        "DetailedHandlerFuncs",
        "FilteringResourceEventHandler",
        "HandlerFuncs",
        "HandlerOptions",
        "Indexer",
        "Informer",
        "InformerFactory",
        "InformerOptions",
        "ListWatch",
        "Lister",
        "ListerWatcher",
        "MultiNamespaceInformer",
        "NotFreshError",
        "QueueKind",
        "ReflectorOptions",
        "Registration",
        "ResourceEventHandler",
        "SharedIndexInformer",
        "SharedInformer",
        "ZstdOptions",
        "new_indexer_informer",
        "new_informer",
        "wait_for_cache_sync",
    ),
    "deltaloop.client": (
        "AnswerTooLargeError",
        "Client",
        "ClientConfig",
        "ClientOptions",
        "ConfigError",
        "CredentialsError",
        "DeleteOptions",
        "LogOptions",
        "PatchType",
        "RequestTimeoutError",
        "ResourceList",
        "StreamEndedError",
        "Transport",
        "TransportError",
        "UnreadableItemsError",
        "WaitTimeoutError",
        "WriteOptions",
        "conditions",
        "connect",
    ),
    "deltaloop.errors": ("DeltaloopError",),
    "deltaloop.events": (
        "ComponentRecorder",
        "EventApi",
        "EventRecorder",
        "EventRecorderOptions",
        "event_field_selector",
        "log_event",
    ),
    "deltaloop.leaderelection": (
        "ConfigMapLock",
        "EndpointsLock",
        "LeaderElectionConfig",
        "LeaderElector",
        "LeaderHealthCheck",
        "LeadershipLostError",
        "LeaseLock",
        "Lock",
        "MultiLock",
        "Term",
        "TermEnd",
        "run_or_die",
    ),
    "deltaloop.runtime": (
        "Access",
        "AlreadyOwnedError",
        "And",
        "AnnotationsChanged",
        "Change",
        "Channel",
        "Context",
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
    ),
    "deltaloop.workqueue": (
        "BucketRateLimiter",
        "ByErrorRateLimiter",
        "DelayingQueue",
        "ItemExponentialFailureRateLimiter",
        "ItemFastSlowRateLimiter",
        "MaxOfRateLimiter",
        "QueueOptions",
        "QueueShutDownError",
        "RateLimiter",
        "RateLimitingQueue",
        "TerminalError",
        "WithJitterRateLimiter",
        "WithMaxWaitRateLimiter",
        "Work",
        "WorkQueue",
        "default_controller_rate_limiter",
        "namespace_flow",
        "parallelize_until",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

_MODULES = {"kinds": "deltaloop.api.kinds", "blocking": "deltaloop.blocking"}

__all__ = [*_MODULES, *_HOME_OF]  # noqa: PLE0604 - the stub beside this file has the list for tools that read it


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(_MODULES[name])
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
