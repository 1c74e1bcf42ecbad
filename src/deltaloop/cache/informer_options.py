"""The options of an informer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource
from deltaloop.cache.core.dictionary_training import ZstdOptions
from deltaloop.cache.core.reflector.reactions import Reaction
from deltaloop.cache.metrics import CacheMetrics
from deltaloop.cache.queue import QueueKind
from deltaloop.cache.reflector_options import ReflectorOptions

Compression: TypeAlias = Literal["zstd"] | ZstdOptions
"""How the JSON of cached objects is compressed; ``zstd`` stands for ``ZstdOptions()``."""


class InformerOptions(Options, frozen=True, kw_only=True):
    """Options of an informer.

    Attributes:
        resync_period: Every so many seconds each handler that has no period of its own is told all objects again, from
            the cache; 0 is never, less than 1 is 1.
        queue: Which queue stands between the reflector and the cache.
        transform: Makes the object that is cached out of the one that comes, before anything else sees it. Called once
            for each object of a list and of an event, never for a resync; it need not be idempotent. One that raises,
            or changes the name, fails the list or the watch: what it failed on is named, and tried again later.
        keep_managed_fields: Whether cached objects keep ``metadata.managedFields``. Otherwise the server is asked to
            leave them out (by a factory), and they are taken off if it does not; a transform does not see them.
        compression: ``zstd`` (or ``ZstdOptions``) keeps the JSON of cached objects compressed, by a dictionary that is
            trained with the first page; needs the extra ``zstd``. Reading more than an object's metadata takes some
            microseconds longer.
        reflector: Page size, watch timeouts and backoff of the reflector.
        consistency_period: Every so many seconds the cache is compared with the server, as by
            ``Informer.check_consistency``, which costs a full list; 0 is never.
        on_error: Called with every error of list and watch, and what follows it; they are logged in any case.
        metrics: Who counts lists, watches, events, failures and deliveries.
        random: Draws the numbers in [0, 1) that spread waits and watch timeouts.
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
        """Refuse periods that are none, and a compression that is not known."""
        check_types(self)
        require_not_negative(
            "InformerOptions", resync_period=self.resync_period, consistency_period=self.consistency_period
        )
        if not (self.compression is None or self.compression == "zstd" or isinstance(self.compression, ZstdOptions)):
            raise InvalidArgumentError(
                f"InformerOptions: compression {self.compression!r} is not known; there is 'zstd'"
            )
