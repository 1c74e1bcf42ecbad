"""What a ``Manager`` is told."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from typing import final

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative, require_positive
from deltaloop.api.times import utc_now
from deltaloop.cache.informer import InformerOptions
from deltaloop.runtime.core.access import Permission
from deltaloop.runtime.core.declared_access import UndeclaredAccess
from deltaloop.runtime.core.shutdown import REPEAT_WINDOW
from deltaloop.runtime.program.pages import BindAddress
from deltaloop.webhooks.server_options import WebhookServerOptions


@final
class ManagerOptions(Options, frozen=True, kw_only=True):
    """Options of a ``Manager``; times are in seconds.

    Attributes:
        namespace: Watch this namespace only; None means all.
        warm_standbys: Whether a process that does not lead keeps its caches and queues up, so that it takes over at
            once. False starts the caches when leadership is first won; they stay up from then on.
        preflight: Whether to ask the server first if this account may do what is needed.
        undeclared_access: What becomes of requests of reconciles that their controller does not declare (``writes``,
            ``reads`` and the like): a warning in a cluster, refused where controllers are developed.
        permissions: What the program itself does beside its controllers, of built-in kinds, for the preflight.
        sync_timeout: How long the first lists may take (controller-runtime's ``CacheSyncTimeout``).
        drain_timeout: How long reconciles may go on by themselves when the program ends; then they are cancelled.
        shutdown_timeout: How long the whole end may take; then it goes without what still runs.
        duplicate_signal_window: A signal that comes again within so long is the same request to end, not a second one;
            0 counts each.
        max_staleness: How long a cache may be without a sign of the server before ``/readyz`` says no.
        require_leadership: Whether ``/readyz`` says no on standbys.
        loop_block_threshold: How long a call may block the event loop before a warning names it; None never warns.
        health: Where ``/healthz`` and ``/readyz`` are served; None nowhere.
        metrics: Where ``/metrics`` is served; None nowhere.
        webhooks: Where webhooks are served, if the manager has some; None nowhere.
        informers: Options of all informers.
        random: Draws the numbers in [0, 1) that spread runs which are asked for after a time (``Result.jitter``).
        wall_clock: Aware time; the deadlines of clean-ups count from the server's ``deletionTimestamp``.
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
    loop_block_threshold: float | None = 1.0
    health: BindAddress | None = None
    metrics: BindAddress | None = None
    webhooks: WebhookServerOptions | None = None
    informers: InformerOptions = msgspec.field(default_factory=InformerOptions)
    random: Callable[[], float] = random.random
    wall_clock: Callable[[], datetime] = utc_now

    def __post_init__(self) -> None:
        """Refuse what is no time."""
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
