"""Options of an informer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, final

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource
from deltaloop.cache.core.reflector.reactions import Reaction
from deltaloop.cache.metrics import CacheMetrics
from deltaloop.cache.queue import QueueKind
from deltaloop.cache.reflector_options import ReflectorOptions

_HIGHEST_LEVEL: Final = 22


@final
class ZstdOptions(Options, frozen=True, kw_only=True):
    """Options for the compression of a cache.

    Attributes:
        level: zstd level, 1 to 22. For objects of 5.6 KB, level 3 saves 5 % more than level 1 and takes 20 % longer.
        dictionary_size: Largest size of the dictionary in bytes. Its copies and tables take about 300 KB per informer.
        page: Number of objects that starts the training before the first list is complete.
        min_objects: Smallest number of objects that are compressed.
    """

    level: int = 1
    dictionary_size: int = 64 * 1024
    page: int = 500
    min_objects: int = 32

    def __post_init__(self) -> None:
        check_types(self)
        require_positive(
            "ZstdOptions",
            level=self.level,
            dictionary_size=self.dictionary_size,
            page=self.page,
            min_objects=self.min_objects,
        )
        if self.level > _HIGHEST_LEVEL:
            raise InvalidArgumentError(
                f"must be <= {_HIGHEST_LEVEL}, got {self.level!r}.", argument="ZstdOptions.level"
            )


Compression: TypeAlias = Literal["zstd"] | ZstdOptions
"""Compression of cached objects. ``zstd`` means ``ZstdOptions()``."""


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
