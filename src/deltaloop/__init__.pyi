from deltaloop import blocking as blocking
from deltaloop.api import kinds as kinds
from deltaloop.api.errors import InvalidInputError as InvalidInputError
from deltaloop.api.errors import InvalidKeyError as InvalidKeyError
from deltaloop.api.errors import InvalidPathError as InvalidPathError
from deltaloop.api.errors import InvalidResourceVersionError as InvalidResourceVersionError
from deltaloop.api.errors import InvalidSelectorError as InvalidSelectorError
from deltaloop.api.errors import MalformedObjectError as MalformedObjectError
from deltaloop.api.errors import MissingExtraError as MissingExtraError
from deltaloop.api.errors import UnknownResourceError as UnknownResourceError
from deltaloop.api.keys import ExplicitKey as ExplicitKey
from deltaloop.api.keys import ObjectName as ObjectName
from deltaloop.api.keys import meta_namespace_key as meta_namespace_key
from deltaloop.api.keys import split_meta_namespace_key as split_meta_namespace_key
from deltaloop.api.list_options import ListOptions as ListOptions
from deltaloop.api.managed_fields import strip_managed_fields as strip_managed_fields
from deltaloop.api.path import Path as Path
from deltaloop.api.path import path as path
from deltaloop.api.redaction import SecretText as SecretText
from deltaloop.api.redaction import redact as redact
from deltaloop.api.references import ObjectReference as ObjectReference
from deltaloop.api.references import Trigger as Trigger
from deltaloop.api.references import controller_reference as controller_reference
from deltaloop.api.references import reference_to as reference_to
from deltaloop.api.resource import ObjectMeta as ObjectMeta
from deltaloop.api.resource import OwnerReference as OwnerReference
from deltaloop.api.resource import Resource as Resource
from deltaloop.api.resource_type import ResourceType as ResourceType
from deltaloop.api.resource_type import resource_type as resource_type
from deltaloop.api.resource_version import compare_resource_versions as compare_resource_versions
from deltaloop.api.selectors import FieldSelector as FieldSelector
from deltaloop.api.selectors import LabelSelector as LabelSelector
from deltaloop.api.status import AlreadyExistsError as AlreadyExistsError
from deltaloop.api.status import ApiError as ApiError
from deltaloop.api.status import BadRequestError as BadRequestError
from deltaloop.api.status import ConflictError as ConflictError
from deltaloop.api.status import ExpiredError as ExpiredError
from deltaloop.api.status import ForbiddenError as ForbiddenError
from deltaloop.api.status import GoneError as GoneError
from deltaloop.api.status import InternalServerError as InternalServerError
from deltaloop.api.status import InvalidError as InvalidError
from deltaloop.api.status import MethodNotAllowedError as MethodNotAllowedError
from deltaloop.api.status import NotAcceptableError as NotAcceptableError
from deltaloop.api.status import NotFoundError as NotFoundError
from deltaloop.api.status import RequestEntityTooLargeError as RequestEntityTooLargeError
from deltaloop.api.status import ServerTimeoutError as ServerTimeoutError
from deltaloop.api.status import ServiceUnavailableError as ServiceUnavailableError
from deltaloop.api.status import Status as Status
from deltaloop.api.status import TooManyRequestsError as TooManyRequestsError
from deltaloop.api.status import UnauthorizedError as UnauthorizedError
from deltaloop.api.status import UnsupportedMediaTypeError as UnsupportedMediaTypeError
from deltaloop.api.watch_event import EventType as EventType
from deltaloop.api.watch_event import MalformedEventError as MalformedEventError
from deltaloop.api.watch_event import WatchEvent as WatchEvent
from deltaloop.api.yaml_reader import read_yaml as read_yaml
from deltaloop.api.yaml_reader import read_yaml_documents as read_yaml_documents
from deltaloop.blocking import BackgroundLoop as BackgroundLoop
from deltaloop.blocking import BackgroundLoopError as BackgroundLoopError
from deltaloop.cache import BufferPolicy as BufferPolicy
from deltaloop.cache import CacheSyncError as CacheSyncError
from deltaloop.cache import DeletedFinalStateUnknown as DeletedFinalStateUnknown
from deltaloop.cache import DetailedHandlerFuncs as DetailedHandlerFuncs
from deltaloop.cache import FilteringResourceEventHandler as FilteringResourceEventHandler
from deltaloop.cache import HandlerFuncs as HandlerFuncs
from deltaloop.cache import HandlerOptions as HandlerOptions
from deltaloop.cache import Indexer as Indexer
from deltaloop.cache import Informer as Informer
from deltaloop.cache import InformerFactory as InformerFactory
from deltaloop.cache import InformerOptions as InformerOptions
from deltaloop.cache import Lister as Lister
from deltaloop.cache import ListerWatcher as ListerWatcher
from deltaloop.cache import ListWatch as ListWatch
from deltaloop.cache import MultiNamespaceInformer as MultiNamespaceInformer
from deltaloop.cache import NotFreshError as NotFreshError
from deltaloop.cache import QueueKind as QueueKind
from deltaloop.cache import ReflectorOptions as ReflectorOptions
from deltaloop.cache import Registration as Registration
from deltaloop.cache import ResourceEventHandler as ResourceEventHandler
from deltaloop.cache import SharedIndexInformer as SharedIndexInformer
from deltaloop.cache import SharedInformer as SharedInformer
from deltaloop.cache import ZstdOptions as ZstdOptions
from deltaloop.cache import new_indexer_informer as new_indexer_informer
from deltaloop.cache import new_informer as new_informer
from deltaloop.cache import wait_for_cache_sync as wait_for_cache_sync
from deltaloop.client import AnswerTooLargeError as AnswerTooLargeError
from deltaloop.client import Client as Client
from deltaloop.client import ClientConfig as ClientConfig
from deltaloop.client import ClientOptions as ClientOptions
from deltaloop.client import ConfigError as ConfigError
from deltaloop.client import CredentialsError as CredentialsError
from deltaloop.client import DeleteOptions as DeleteOptions
from deltaloop.client import LogOptions as LogOptions
from deltaloop.client import PatchType as PatchType
from deltaloop.client import RequestTimeoutError as RequestTimeoutError
from deltaloop.client import ResourceList as ResourceList
from deltaloop.client import StreamEndedError as StreamEndedError
from deltaloop.client import Transport as Transport
from deltaloop.client import TransportError as TransportError
from deltaloop.client import UnreadableItemsError as UnreadableItemsError
from deltaloop.client import WaitTimeoutError as WaitTimeoutError
from deltaloop.client import WriteOptions as WriteOptions
from deltaloop.client import conditions as conditions
from deltaloop.client import connect as connect
from deltaloop.errors import DeltaloopError as DeltaloopError
from deltaloop.events import ComponentRecorder as ComponentRecorder
from deltaloop.events import EventApi as EventApi
from deltaloop.events import EventRecorder as EventRecorder
from deltaloop.events import EventRecorderOptions as EventRecorderOptions
from deltaloop.events import event_field_selector as event_field_selector
from deltaloop.events import log_event as log_event
from deltaloop.leaderelection import ConfigMapLock as ConfigMapLock
from deltaloop.leaderelection import EndpointsLock as EndpointsLock
from deltaloop.leaderelection import LeaderElectionConfig as LeaderElectionConfig
from deltaloop.leaderelection import LeaderElector as LeaderElector
from deltaloop.leaderelection import LeaderHealthCheck as LeaderHealthCheck
from deltaloop.leaderelection import LeadershipLostError as LeadershipLostError
from deltaloop.leaderelection import LeaseLock as LeaseLock
from deltaloop.leaderelection import Lock as Lock
from deltaloop.leaderelection import MultiLock as MultiLock
from deltaloop.leaderelection import Term as Term
from deltaloop.leaderelection import TermEnd as TermEnd
from deltaloop.leaderelection import run_or_die as run_or_die
from deltaloop.runtime import Access as Access
from deltaloop.runtime import AlreadyOwnedError as AlreadyOwnedError
from deltaloop.runtime import And as And
from deltaloop.runtime import AnnotationsChanged as AnnotationsChanged
from deltaloop.runtime import Change as Change
from deltaloop.runtime import Channel as Channel
from deltaloop.runtime import Context as Context
from deltaloop.runtime import Every as Every
from deltaloop.runtime import GenerationChanged as GenerationChanged
from deltaloop.runtime import HasLabels as HasLabels
from deltaloop.runtime import HealthServerError as HealthServerError
from deltaloop.runtime import HotLoopOptions as HotLoopOptions
from deltaloop.runtime import InvalidControllerError as InvalidControllerError
from deltaloop.runtime import InvalidResultError as InvalidResultError
from deltaloop.runtime import LabelsChanged as LabelsChanged
from deltaloop.runtime import Listen as Listen
from deltaloop.runtime import Manager as Manager
from deltaloop.runtime import ManagerOptions as ManagerOptions
from deltaloop.runtime import Not as Not
from deltaloop.runtime import Or as Or
from deltaloop.runtime import PathChanged as PathChanged
from deltaloop.runtime import Predicate as Predicate
from deltaloop.runtime import PreflightError as PreflightError
from deltaloop.runtime import ReconcileCancelledError as ReconcileCancelledError
from deltaloop.runtime import ReconcileClient as ReconcileClient
from deltaloop.runtime import ReconcileStoppedError as ReconcileStoppedError
from deltaloop.runtime import ReconcileTimeoutError as ReconcileTimeoutError
from deltaloop.runtime import Request as Request
from deltaloop.runtime import ResourceVersionChanged as ResourceVersionChanged
from deltaloop.runtime import Result as Result
from deltaloop.runtime import ShutdownTimeoutError as ShutdownTimeoutError
from deltaloop.runtime import Source as Source
from deltaloop.runtime import Watch as Watch
from deltaloop.runtime import When as When
from deltaloop.runtime import Where as Where
from deltaloop.runtime import Written as Written
from deltaloop.runtime import add_finalizer as add_finalizer
from deltaloop.runtime import configure_logging as configure_logging
from deltaloop.runtime import controller as controller
from deltaloop.runtime import enqueue as enqueue
from deltaloop.runtime import enqueue_owner as enqueue_owner
from deltaloop.runtime import remove_finalizer as remove_finalizer
from deltaloop.runtime import set_controller_reference as set_controller_reference
from deltaloop.runtime import set_owner_reference as set_owner_reference
from deltaloop.workqueue import BucketRateLimiter as BucketRateLimiter
from deltaloop.workqueue import ByErrorRateLimiter as ByErrorRateLimiter
from deltaloop.workqueue import DelayingQueue as DelayingQueue
from deltaloop.workqueue import ItemExponentialFailureRateLimiter as ItemExponentialFailureRateLimiter
from deltaloop.workqueue import ItemFastSlowRateLimiter as ItemFastSlowRateLimiter
from deltaloop.workqueue import MaxOfRateLimiter as MaxOfRateLimiter
from deltaloop.workqueue import QueueOptions as QueueOptions
from deltaloop.workqueue import QueueShutDownError as QueueShutDownError
from deltaloop.workqueue import RateLimiter as RateLimiter
from deltaloop.workqueue import RateLimitingQueue as RateLimitingQueue
from deltaloop.workqueue import TerminalError as TerminalError
from deltaloop.workqueue import WithJitterRateLimiter as WithJitterRateLimiter
from deltaloop.workqueue import WithMaxWaitRateLimiter as WithMaxWaitRateLimiter
from deltaloop.workqueue import Work as Work
from deltaloop.workqueue import WorkQueue as WorkQueue
from deltaloop.workqueue import default_controller_rate_limiter as default_controller_rate_limiter
from deltaloop.workqueue import namespace_flow as namespace_flow
from deltaloop.workqueue import parallelize_until as parallelize_until

__all__ = [
    "Access",
    "AlreadyExistsError",
    "AlreadyOwnedError",
    "And",
    "AnnotationsChanged",
    "AnswerTooLargeError",
    "ApiError",
    "BackgroundLoop",
    "BackgroundLoopError",
    "BadRequestError",
    "BucketRateLimiter",
    "BufferPolicy",
    "ByErrorRateLimiter",
    "CacheSyncError",
    "Change",
    "Channel",
    "Client",
    "ClientConfig",
    "ClientOptions",
    "ComponentRecorder",
    "ConfigError",
    "ConfigMapLock",
    "ConflictError",
    "Context",
    "CredentialsError",
    "DelayingQueue",
    "DeleteOptions",
    "DeletedFinalStateUnknown",
    "DeltaloopError",
    "DetailedHandlerFuncs",
    "EndpointsLock",
    "EventApi",
    "EventRecorder",
    "EventRecorderOptions",
    "EventType",
    "Every",
    "ExpiredError",
    "ExplicitKey",
    "FieldSelector",
    "FilteringResourceEventHandler",
    "ForbiddenError",
    "GenerationChanged",
    "GoneError",
    "HandlerFuncs",
    "HandlerOptions",
    "HasLabels",
    "HealthServerError",
    "HotLoopOptions",
    "Indexer",
    "Informer",
    "InformerFactory",
    "InformerOptions",
    "InternalServerError",
    "InvalidControllerError",
    "InvalidError",
    "InvalidInputError",
    "InvalidKeyError",
    "InvalidPathError",
    "InvalidResourceVersionError",
    "InvalidResultError",
    "InvalidSelectorError",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "LabelSelector",
    "LabelsChanged",
    "LeaderElectionConfig",
    "LeaderElector",
    "LeaderHealthCheck",
    "LeadershipLostError",
    "LeaseLock",
    "ListOptions",
    "ListWatch",
    "Listen",
    "Lister",
    "ListerWatcher",
    "Lock",
    "LogOptions",
    "MalformedEventError",
    "MalformedObjectError",
    "Manager",
    "ManagerOptions",
    "MaxOfRateLimiter",
    "MethodNotAllowedError",
    "MissingExtraError",
    "MultiLock",
    "MultiNamespaceInformer",
    "Not",
    "NotAcceptableError",
    "NotFoundError",
    "NotFreshError",
    "ObjectMeta",
    "ObjectName",
    "ObjectReference",
    "Or",
    "OwnerReference",
    "PatchType",
    "Path",
    "PathChanged",
    "Predicate",
    "PreflightError",
    "QueueKind",
    "QueueOptions",
    "QueueShutDownError",
    "RateLimiter",
    "RateLimitingQueue",
    "ReconcileCancelledError",
    "ReconcileClient",
    "ReconcileStoppedError",
    "ReconcileTimeoutError",
    "ReflectorOptions",
    "Registration",
    "Request",
    "RequestEntityTooLargeError",
    "RequestTimeoutError",
    "Resource",
    "ResourceEventHandler",
    "ResourceList",
    "ResourceType",
    "ResourceVersionChanged",
    "Result",
    "SecretText",
    "ServerTimeoutError",
    "ServiceUnavailableError",
    "SharedIndexInformer",
    "SharedInformer",
    "ShutdownTimeoutError",
    "Source",
    "Status",
    "StreamEndedError",
    "Term",
    "TermEnd",
    "TerminalError",
    "TooManyRequestsError",
    "Transport",
    "TransportError",
    "Trigger",
    "UnauthorizedError",
    "UnknownResourceError",
    "UnreadableItemsError",
    "UnsupportedMediaTypeError",
    "WaitTimeoutError",
    "Watch",
    "WatchEvent",
    "When",
    "Where",
    "WithJitterRateLimiter",
    "WithMaxWaitRateLimiter",
    "Work",
    "WorkQueue",
    "WriteOptions",
    "Written",
    "ZstdOptions",
    "add_finalizer",
    "blocking",
    "compare_resource_versions",
    "conditions",
    "configure_logging",
    "connect",
    "controller",
    "controller_reference",
    "default_controller_rate_limiter",
    "enqueue",
    "enqueue_owner",
    "event_field_selector",
    "kinds",
    "log_event",
    "meta_namespace_key",
    "namespace_flow",
    "new_indexer_informer",
    "new_informer",
    "parallelize_until",
    "path",
    "read_yaml",
    "read_yaml_documents",
    "redact",
    "reference_to",
    "remove_finalizer",
    "resource_type",
    "run_or_die",
    "set_controller_reference",
    "set_owner_reference",
    "split_meta_namespace_key",
    "strip_managed_fields",
    "wait_for_cache_sync",
]
