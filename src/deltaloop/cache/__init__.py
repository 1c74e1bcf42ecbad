"""The informer cache: what the server has, kept here, with everybody told who asked.

    Reflector ──▶ Queue ──▶ Controller ──▶ Indexer
                                          └──▶ handlers, each with its own buffer and task

This room owns listing and watching without end (``Reflector``), the queue of deltas, the store with indexes,
informers with their handlers, the factory that shares them, and listers. It asks the world for one thing: a
``ListerWatcher``. It knows objects as ``Resource`` and hands out the class of their ``ResourceType`` where there is
one.

Follow one event: ``reflector.py`` (core/reflector/) → ``real_fifo.py`` (core/real_fifo.py) → ``controller.py`` →
``informer.py`` (core/process_deltas.py) → ``store.py`` (core/store.py), and by way of ``shared_processor.py`` to each
``listener.py`` (core/notification_buffer.py, core/sync_tracker.py).
"""

from deltaloop.cache.controller import Controller, ControllerConfig
from deltaloop.cache.core.consistency import ConsistencyReport
from deltaloop.cache.core.deltas import (
    DeletedFinalStateUnknown,
    Delta,
    Deltas,
    DeltaType,
    KnownObjects,
    WholeList,
    deletion_handling_key,
)
from deltaloop.cache.core.dictionary_training import ZstdOptions
from deltaloop.cache.core.freshness import Freshness
from deltaloop.cache.core.notification_buffer import BufferPolicy
from deltaloop.cache.core.reflector.reactions import Operation, Reaction, Recovery
from deltaloop.cache.core.reflector.statistics import ReflectorStatistics
from deltaloop.cache.core.store import Indexers, IndexFailure, IndexFunc, StoreIndex, StoreWrite
from deltaloop.cache.delta_fifo import DeltaFIFO
from deltaloop.cache.errors import (
    CacheSyncError,
    FifoClosedError,
    IndexerConflictError,
    InformerStoppedError,
    NotFreshError,
    RepeatedContinueError,
    RequeueError,
    SyncFailure,
    TransactionError,
    TransformError,
    UnknownIndexError,
    VersionWentBackError,
    VeryShortWatchError,
    WatchListEndedError,
    WatchListStalledError,
)
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.handlers import (
    DetailedHandlerFuncs,
    FilteringResourceEventHandler,
    HandlerFuncs,
    HandlerOptions,
    ResourceEventHandler,
)
from deltaloop.cache.informer import Informer, InformerOptions, new_indexer_informer, new_informer
from deltaloop.cache.informer_options import Compression
from deltaloop.cache.informer_selection import InformerSelection, ObjectSelection
from deltaloop.cache.listener import Registration
from deltaloop.cache.lister import Lister, NamespaceLister, ReadableIndexer
from deltaloop.cache.listwatch import ByteStream, ListerWatcher, ListWatch, ListWatchClient
from deltaloop.cache.metrics import CacheLevels, CacheMetrics
from deltaloop.cache.multi_namespace import MultiNamespaceInformer
from deltaloop.cache.queue import Queue, QueueKind
from deltaloop.cache.real_fifo import RealFIFO
from deltaloop.cache.reflector import Reflector, ReflectorStore, ResourceVersionUpdater
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.cache.shared_informer import (
    SharedIndexInformer,
    SharedInformer,
    new_shared_index_informer,
    new_shared_informer,
)
from deltaloop.cache.store import NAMESPACE_INDEX, Indexer, Store, namespace_index_func
from deltaloop.cache.sync import HasSynced, wait_for_cache_sync
from deltaloop.cache.thread_safe_store import ThreadSafeStore

__all__ = [
    "NAMESPACE_INDEX",
    "BufferPolicy",
    "ByteStream",
    "CacheLevels",
    "CacheMetrics",
    "CacheSyncError",
    "Compression",
    "ConsistencyReport",
    "Controller",
    "ControllerConfig",
    "DeletedFinalStateUnknown",
    "Delta",
    "DeltaFIFO",
    "DeltaType",
    "Deltas",
    "DetailedHandlerFuncs",
    "FifoClosedError",
    "FilteringResourceEventHandler",
    "Freshness",
    "HandlerFuncs",
    "HandlerOptions",
    "HasSynced",
    "IndexFailure",
    "IndexFunc",
    "Indexer",
    "IndexerConflictError",
    "Indexers",
    "Informer",
    "InformerFactory",
    "InformerOptions",
    "InformerSelection",
    "InformerStoppedError",
    "KnownObjects",
    "ListWatch",
    "ListWatchClient",
    "Lister",
    "ListerWatcher",
    "MultiNamespaceInformer",
    "NamespaceLister",
    "NotFreshError",
    "ObjectSelection",
    "Operation",
    "Queue",
    "QueueKind",
    "Reaction",
    "ReadableIndexer",
    "RealFIFO",
    "Recovery",
    "Reflector",
    "ReflectorOptions",
    "ReflectorStatistics",
    "ReflectorStore",
    "Registration",
    "RepeatedContinueError",
    "RequeueError",
    "ResourceEventHandler",
    "ResourceVersionUpdater",
    "SharedIndexInformer",
    "SharedInformer",
    "Store",
    "StoreIndex",
    "StoreWrite",
    "SyncFailure",
    "ThreadSafeStore",
    "TransactionError",
    "TransformError",
    "UnknownIndexError",
    "VersionWentBackError",
    "VeryShortWatchError",
    "WatchListEndedError",
    "WatchListStalledError",
    "WholeList",
    "ZstdOptions",
    "deletion_handling_key",
    "namespace_index_func",
    "new_indexer_informer",
    "new_informer",
    "new_shared_index_informer",
    "new_shared_informer",
    "wait_for_cache_sync",
]
