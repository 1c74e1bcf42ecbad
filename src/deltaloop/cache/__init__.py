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
"""

from deltaloop.api.keys import ExplicitKey as ExplicitKey
from deltaloop.api.keys import ObjectName as ObjectName
from deltaloop.api.keys import meta_namespace_key as meta_namespace_key
from deltaloop.api.keys import split_meta_namespace_key as split_meta_namespace_key
from deltaloop.api.managed_fields import strip_managed_fields as strip_managed_fields
from deltaloop.cache.controller import Controller as Controller
from deltaloop.cache.controller import ControllerConfig as ControllerConfig
from deltaloop.cache.core.consistency import ConsistencyReport as ConsistencyReport
from deltaloop.cache.core.deltas import DeletedFinalStateUnknown as DeletedFinalStateUnknown
from deltaloop.cache.core.deltas import Delta as Delta
from deltaloop.cache.core.deltas import Deltas as Deltas
from deltaloop.cache.core.deltas import DeltaType as DeltaType
from deltaloop.cache.core.deltas import KnownObjects as KnownObjects
from deltaloop.cache.core.deltas import WholeList as WholeList
from deltaloop.cache.core.deltas import deletion_handling_key as deletion_handling_key
from deltaloop.cache.core.dictionary_training import ZstdOptions as ZstdOptions
from deltaloop.cache.core.freshness import Freshness as Freshness
from deltaloop.cache.core.notification_buffer import BufferPolicy as BufferPolicy
from deltaloop.cache.core.reflector.reactions import Operation as Operation
from deltaloop.cache.core.reflector.reactions import Reaction as Reaction
from deltaloop.cache.core.reflector.reactions import Recovery as Recovery
from deltaloop.cache.core.reflector.statistics import ReflectorStatistics as ReflectorStatistics
from deltaloop.cache.core.store import Indexers as Indexers
from deltaloop.cache.core.store import IndexFailure as IndexFailure
from deltaloop.cache.core.store import IndexFunc as IndexFunc
from deltaloop.cache.core.store import StoreIndex as StoreIndex
from deltaloop.cache.core.store import StoreWrite as StoreWrite
from deltaloop.cache.delta_fifo import DeltaFIFO as DeltaFIFO
from deltaloop.cache.errors import SyncFailure as SyncFailure
from deltaloop.cache.factory import InformerFactory as InformerFactory
from deltaloop.cache.handlers import DetailedHandlerFuncs as DetailedHandlerFuncs
from deltaloop.cache.handlers import FilteringResourceEventHandler as FilteringResourceEventHandler
from deltaloop.cache.handlers import HandlerFuncs as HandlerFuncs
from deltaloop.cache.handlers import HandlerOptions as HandlerOptions
from deltaloop.cache.handlers import ResourceEventHandler as ResourceEventHandler
from deltaloop.cache.informer import Informer as Informer
from deltaloop.cache.informer import InformerOptions as InformerOptions
from deltaloop.cache.informer import new_indexer_informer as new_indexer_informer
from deltaloop.cache.informer import new_informer as new_informer
from deltaloop.cache.informer_options import Compression as Compression
from deltaloop.cache.informer_selection import InformerSelection as InformerSelection
from deltaloop.cache.informer_selection import ObjectSelection as ObjectSelection
from deltaloop.cache.listener import Registration as Registration
from deltaloop.cache.lister import Lister as Lister
from deltaloop.cache.lister import NamespaceLister as NamespaceLister
from deltaloop.cache.lister import ReadableIndexer as ReadableIndexer
from deltaloop.cache.listwatch import ByteStream as ByteStream
from deltaloop.cache.listwatch import ListerWatcher as ListerWatcher
from deltaloop.cache.listwatch import ListWatch as ListWatch
from deltaloop.cache.listwatch import ListWatchClient as ListWatchClient
from deltaloop.cache.metrics import CacheLevels as CacheLevels
from deltaloop.cache.metrics import CacheMetrics as CacheMetrics
from deltaloop.cache.multi_namespace import MultiNamespaceInformer as MultiNamespaceInformer
from deltaloop.cache.queue import Queue as Queue
from deltaloop.cache.queue import QueueKind as QueueKind
from deltaloop.cache.real_fifo import RealFIFO as RealFIFO
from deltaloop.cache.reflector import Reflector as Reflector
from deltaloop.cache.reflector import ReflectorStore as ReflectorStore
from deltaloop.cache.reflector import ResourceVersionUpdater as ResourceVersionUpdater
from deltaloop.cache.reflector_options import ReflectorOptions as ReflectorOptions
from deltaloop.cache.shared_informer import SharedIndexInformer as SharedIndexInformer
from deltaloop.cache.shared_informer import SharedInformer as SharedInformer
from deltaloop.cache.shared_informer import new_shared_index_informer as new_shared_index_informer
from deltaloop.cache.shared_informer import new_shared_informer as new_shared_informer
from deltaloop.cache.store import NAMESPACE_INDEX as NAMESPACE_INDEX
from deltaloop.cache.store import Indexer as Indexer
from deltaloop.cache.store import Store as Store
from deltaloop.cache.store import namespace_index_func as namespace_index_func
from deltaloop.cache.sync import HasSynced as HasSynced
from deltaloop.cache.sync import wait_for_cache_sync as wait_for_cache_sync
from deltaloop.cache.thread_safe_store import ThreadSafeStore as ThreadSafeStore
