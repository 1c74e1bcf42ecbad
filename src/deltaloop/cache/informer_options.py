"""Options of an informer."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias, TypedDict

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource
from deltaloop.api.shard_selector import ShardSelector
from deltaloop.cache.core.dictionary_training import ZstdOptions
from deltaloop.cache.core.reflector.reactions import Reaction
from deltaloop.cache.core.store import IndexFunc
from deltaloop.cache.metrics import CacheMetrics
from deltaloop.cache.queue import QueueKind
from deltaloop.cache.reflector_options import ReflectorOptions

Compression: TypeAlias = Literal["zstd"] | ZstdOptions
"""Compression of cached objects. ``zstd`` means ``ZstdOptions()``."""


class ObjectSelection(TypedDict, total=False):
    """Selection of objects and their indexes.

    All keys are optional.

    Attributes:
        indexers: Index functions by name. They are added to an existing informer.
        label_selector: Label selector, such as ``app=web``.
        field_selector: Field selector, such as ``spec.nodeName=a``.
        shard_selector: Ranges of hashes of the uid or namespace, by default all.
        transform: Function that returns the object to cache. None means the factory's transform.
        keep_managed_fields: Whether cached objects keep ``metadata.managedFields``. None means the factory's option.
        compression: ``zstd`` compresses cached objects. None means the factory's option.
    """

    indexers: Mapping[str, IndexFunc[Resource]] | None
    label_selector: str
    field_selector: str
    shard_selector: ShardSelector | None
    transform: Callable[[Resource], Resource] | None
    keep_managed_fields: bool | None
    compression: Compression | None


class InformerSelection(ObjectSelection, total=False):
    """Selection of objects in a namespace.

    Attributes:
        namespace: Namespace to watch. None means the factory's namespace. Cluster-scoped kinds ignore it.
    """

    namespace: str | None


class InformerOptions(Options, frozen=True, kw_only=True):
    """Options of an informer.

    Attributes:
        resync_period: Seconds between resyncs for handlers without their own period. 0 disables resyncs; the minimum is
            1.
        queue: Queue between the reflector and the cache.
        transform: Function applied to each received object, before other code sees it. It returns the object to cache.
            It is called once for each object of a list or event, not for resyncs, so it need not be idempotent. If it
            raises or changes the name, the list or watch fails and is retried later.
        keep_managed_fields: Whether cached objects keep ``metadata.managedFields``. By default a factory asks the
            server to omit them, and they are removed on arrival if necessary, before the transform.
        compression: ``zstd`` or ``ZstdOptions`` compresses cached objects with a dictionary that is trained on the
            first page. This needs the extra ``zstd``. Reading more than an object's metadata then takes some
            microseconds longer.
        reflector: Page size, watch timeouts and backoff of the reflector.
        consistency_period: Seconds between comparisons with the server, as by ``Informer.check_consistency``. Each
            costs a full list. 0 disables them.
        on_error: Function called with each error of lists and watches, and its recovery. Errors are also logged.
        metrics: Hooks for lists, watches, events, failures and deliveries, or None.
        random: Function that returns random numbers in [0, 1) for the jitter of delays and watch timeouts.
    """

    resync_period: float = 0.0
    queue: QueueKind = QueueKind.REAL_FIFO
    transform: Callable[[Resource], Resource] | None = None
    keep_managed_fields: bool = False
    compression: Compression | None = None
    reflector: ReflectorOptions = msgspec.field(default_factory=ReflectorOptions)
    consistency_period: float = 0.0
    on_error: Callable[[Reaction], object] | None = None
    metrics: CacheMetrics | None = None
    random: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        check_types(self)
        require_not_negative(
            "InformerOptions", resync_period=self.resync_period, consistency_period=self.consistency_period
        )
        if not (self.compression is None or self.compression == "zstd" or isinstance(self.compression, ZstdOptions)):
            raise InvalidArgumentError(
                f"must be 'zstd' or None, got {self.compression!r}.", argument="InformerOptions.compression"
            )
