"""The table of old names: what moved, and what is called differently.

A name that moved and is called differently stands in both tables: first it moves, then it gets its new name.
"""

from __future__ import annotations

from typing import Final

_MOVES: Final = {
    ("deltaloop", "deltaloop.api"): """
        EventType Path SecretText Status Trigger WatchEvent compare_resource_versions
        controller_reference reference_to
    """,
    ("deltaloop", "deltaloop.blocking"): "BackgroundLoop",
    ("deltaloop", "deltaloop.cache"): """
        BufferPolicy DeletedFinalStateUnknown DetailedHandlerFuncs ExplicitKey FilteringResourceEventHandler Indexer
        ListWatch ListerWatcher MultiNamespaceInformer ObjectName QueueKind ReflectorOptions Registration
        ResourceEventHandler SharedIndexInformer SharedInformer ZstdOptions meta_namespace_key new_indexer_informer
        new_informer split_meta_namespace_key strip_managed_fields wait_for_cache_sync
    """,
    ("deltaloop", "deltaloop.client"): "Transport",
    ("deltaloop", "deltaloop.errors"): """
        AlreadyOwnedError BackgroundLoopError BadRequestError CacheSyncError GoneError HealthServerError
        InternalServerError InvalidControllerError InvalidInputError InvalidKeyError InvalidPathError
        InvalidResourceVersionError InvalidResultError InvalidSelectorError LeadershipLostError MalformedEventError
        MethodNotAllowedError MissingExtraError NotAcceptableError NotFreshError PreflightError QueueShutDownError
        ReconcileCancelledError ReconcileStoppedError ReconcileTimeoutError RequestEntityTooLargeError
        ServerTimeoutError ServiceUnavailableError ShutdownTimeoutError UnauthorizedError UnsupportedMediaTypeError
    """,
    ("deltaloop", "deltaloop.events"): "ComponentRecorder EventApi EventRecorderOptions event_field_selector log_event",
    ("deltaloop", "deltaloop.leaderelection"): """
        ConfigMapLock EndpointsLock LeaderHealthCheck Lock MultiLock Term TermEnd run_or_die
    """,
    ("deltaloop", "deltaloop.predicates"): """
        And AnnotationsChanged Change GenerationChanged HasLabels LabelsChanged Not Or PathChanged Predicate
        ResourceVersionChanged When Where
    """,
    ("deltaloop", "deltaloop.runtime"): "HotLoopOptions Listen",
    ("deltaloop", "deltaloop.sources"): "Channel Every Source",
    ("deltaloop", "deltaloop.workqueue"): """
        BucketRateLimiter ByErrorRateLimiter DelayingQueue ItemExponentialFailureRateLimiter ItemFastSlowRateLimiter
        MaxOfRateLimiter QueueOptions RateLimiter WithJitterRateLimiter WithMaxWaitRateLimiter Work WorkQueue
        default_controller_rate_limiter namespace_flow parallelize_until
    """,
    ("deltaloop.apiserver", "deltaloop.errors"): "DataDirectoryError ManifestError ServerStartError",
    ("deltaloop.blocking", "deltaloop.errors"): "BackgroundLoopError HandlerStillRunsError",
    ("deltaloop.cache", "deltaloop.errors"): """
        CacheSyncError FifoClosedError IndexerConflictError InformerStoppedError NotFreshError RepeatedContinueError
        RequeueError TransactionError TransformError UnknownIndexError VersionWentBackError VeryShortWatchError
        WatchListEndedError WatchListStalledError
    """,
    ("deltaloop.client", "deltaloop.errors"): """
        AnswerTooLargeError ConfigError CredentialsError RequestTimeoutError StreamEndedError TransportError
        UnreadableItemsError WaitTimeoutError
    """,
    ("deltaloop.leaderelection", "deltaloop.errors"): "LeadershipLostError",
    ("deltaloop.runtime", "deltaloop.api"): "configure_logging",
    ("deltaloop.runtime", "deltaloop.errors"): """
        AlreadyOwnedError HealthServerError InvalidControllerError InvalidResultError PreflightError
        ReconcileCancelledError ReconcileStoppedError ReconcileTimeoutError ShutdownTimeoutError
    """,
    ("deltaloop.runtime", "deltaloop.predicates"): """
        And AnnotationsChanged Change GenerationChanged HasLabels LabelsChanged Not Or PathChanged Predicate
        ResourceVersionChanged When Where
    """,
    ("deltaloop.runtime", "deltaloop.sources"): "Channel Every Source Watch",
    ("deltaloop.testing", "deltaloop.errors"): "EventuallyError",
    ("deltaloop.workqueue", "deltaloop.errors"): "QueueShutDownError TerminalError",
}
MOVED: Final = {(old, name): new for (old, new), names in _MOVES.items() for name in names.split()}
"""From where a name was, and the name, to where it is."""

RENAMED: Final[dict[str, str]] = {
    "deltaloop.api.errors.InvalidInputError": "deltaloop.errors.InvalidArgumentError",
    "deltaloop.errors.InvalidInputError": "deltaloop.errors.InvalidArgumentError",
    "deltaloop.apiserver.ClientCertificate": "deltaloop.apiserver.IssuedCertificate",
    "deltaloop.cache.Decision": "deltaloop.cache.Recovery",
    "deltaloop.cache.Place": "deltaloop.cache.Operation",
    "deltaloop.client.conditions": "deltaloop.wait",
    "deltaloop.conditions": "deltaloop.wait",
    "deltaloop.metrics.CacheMetrics": "deltaloop.metrics.InformerMetrics",
    "deltaloop.metrics.ControllerMetrics": "deltaloop.metrics.ReconcileMetrics",
    "deltaloop.testing.Fault": "deltaloop.testing.RelayFault",
    "deltaloop.resource_type": "deltaloop.custom_resource",
    "deltaloop.Written": "deltaloop.OperationResult",
    "deltaloop.runtime.Written": "deltaloop.client.OperationResult",
}
"""From a dotted name to its new one."""

_ON_THE_CLIENT: Final = "a verb of the client: ctx.client.add_finalizer, ctx.client.remove_finalizer"

GONE: Final[dict[str, str]] = {
    "deltaloop.add_finalizer": _ON_THE_CLIENT,
    "deltaloop.remove_finalizer": _ON_THE_CLIENT,
    "deltaloop.runtime.add_finalizer": _ON_THE_CLIENT,
    "deltaloop.runtime.remove_finalizer": _ON_THE_CLIENT,
    "deltaloop.PatchType.APPLY": "the verb apply",
    "deltaloop.client.PatchType.APPLY": "the verb apply",
    "deltaloop.workqueue.NoMetrics": "nothing: a queue without metrics has none",
}
"""From a dotted name that is gone to what is written in its place."""

KEYWORDS: Final[dict[tuple[str, str], str]] = {
    ("deltaloop.cache.Reaction", "decision"): "recovery=",
    ("deltaloop.cache.Reaction", "place"): "operation=",
    (".find", "max_staleness"): "with_max_staleness(...) before the verb",
    (".get", "max_staleness"): "with_max_staleness(...) before the verb",
    (".list", "max_staleness"): "with_max_staleness(...) before the verb",
    (".patch", "force"): "the verb apply, which has force=",
}
"""From what is called (by its new name, or a method of anything), and a keyword, to what is written in its place."""

METHODS: Final[dict[str, str]] = {
    "drop_finalizer": "remove_finalizer",
    "ensure_finalizer": "add_finalizer",
}
"""From a method that no class of ours has any more, by a name that hardly any other has, to what takes its place."""
