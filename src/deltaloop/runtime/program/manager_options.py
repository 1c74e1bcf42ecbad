"""Options for the manager."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import final

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop.api.times import utc_now
from deltaloop.cache.informer import InformerOptions
from deltaloop.runtime.core.access import Permission
from deltaloop.runtime.core.declared_access import UndeclaredAccess
from deltaloop.runtime.core.shutdown import REPEAT_WINDOW
from deltaloop.runtime.program.bind_address import BindAddress
from deltaloop.webhooks.server_options import WebhookServerOptions


@final
class ManagerOptions(Options, frozen=True, kw_only=True):
    """Options for a ``Manager``; times are in seconds.

    Attributes:
        namespace: The only namespace to watch. None means all namespaces.
        warm_standbys: Whether standbys keep caches and queues warm for a fast takeover. Otherwise the caches start when
            leadership is first acquired, and stay up afterwards.
        preflight: Whether to check the account's permissions first.
        undeclared_access: Handling of requests that a reconcile sends and its controller does not declare (``writes``,
            ``reads`` and so on), warn or reject.
        permissions: Permissions of the program itself for built-in kinds, which the preflight checks as well.
        sync_timeout: Time limit for the first lists (controller-runtime's ``CacheSyncTimeout``).
        drain_timeout: Time for reconciles to end by themselves at shutdown before they are canceled.
        shutdown_timeout: Time limit for the whole shutdown. Reconciles that still run are abandoned.
        duplicate_signal_window: Time within which a repeated signal counts as the same request. 0 counts each signal.
        max_staleness: Time without a sign of the server after which a cache fails ``/readyz``.
        require_leadership: Whether ``/readyz`` fails on standbys.
        doctor_actions: True to accept actions at ``/doctor`` by POST, such as a reconcile of a key.
        loop_block_threshold: Time for which a call can block the event loop before a warning. None disables warnings.
        health: Address of ``/healthz`` and ``/readyz``. None disables them.
        metrics: Address of ``/metrics``. None disables it.
        webhooks: Address and options of the webhook server. None disables it.
        informers: Options for all informers.
        record: File for a trace of all reconciles with causes and writes. None disables it.
        random: Source of numbers in [0, 1) for ``Result.jitter``.
        wall_clock: Clock that returns aware times. Cleanup deadlines start at the server's ``deletionTimestamp``.
    """

    namespace: str | None = None
    warm_standbys: bool = True
    preflight: bool = True
    undeclared_access: UndeclaredAccess = UndeclaredAccess.WARN
    permissions: tuple[Permission, ...] = ()
    sync_timeout: float = 120.0
    drain_timeout: float = 20.0
    shutdown_timeout: float = 30.0
    duplicate_signal_window: float = REPEAT_WINDOW
    max_staleness: float = 600.0
    require_leadership: bool = False
    doctor_actions: bool = False
    loop_block_threshold: float | None = 1.0
    health: BindAddress | None = None
    metrics: BindAddress | None = None
    webhooks: WebhookServerOptions | None = None
    informers: InformerOptions = msgspec.field(default_factory=InformerOptions)
    record: Path | None = None
    random: Callable[[], float] = random.random
    wall_clock: Callable[[], datetime] = utc_now

    def __post_init__(self) -> None:
        check_types(self)
        require_positive("ManagerOptions", sync_timeout=self.sync_timeout, max_staleness=self.max_staleness)
        if self.loop_block_threshold is not None:
            require_positive("ManagerOptions", loop_block_threshold=self.loop_block_threshold)
        require_not_negative(
            "ManagerOptions",
            drain_timeout=self.drain_timeout,
            shutdown_timeout=self.shutdown_timeout,
            duplicate_signal_window=self.duplicate_signal_window,
        )
