"""``run_or_die``, for programs that exit and are restarted when they lose leadership."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from deltaloop.client.client import Client
from deltaloop.leaderelection.config import LeaderElectionConfig, LeaderElectionMetrics
from deltaloop.leaderelection.elector import LeaderElector
from deltaloop.leaderelection.health import LeaderHealthCheck
from deltaloop.leaderelection.lock import Lock
from deltaloop.leaderelection.term import Term

T = TypeVar("T")


async def run_or_die(
    lock: Lock,
    work: Callable[[Term], Awaitable[T]],
    config: LeaderElectionConfig | None = None,
    *,
    client: Client | None = None,
    metrics: LeaderElectionMetrics | None = None,
    watchdog: LeaderHealthCheck | None = None,
) -> T:
    """Run ``work`` after this process becomes the leader, and return its result.

    The process does not contend again after it loses leadership, regardless of ``rejoin`` in the configuration. Let the
    error end the process. A cancellation cancels the work, waits for its end and releases the lock.

    Args:
        lock: Lock to contend for, for example a ``LeaseLock``.
        work: Function called with the term. It is canceled when leadership is lost.
        config: Durations and callbacks, as in client-go.
        client: Client that ``term.client`` guards. By default, the client of the lock.
        metrics: Hooks for metrics.
        watchdog: Health check that watches the elector.

    Raises:
        LeadershipLostError: If leadership was lost.

    Source: client-go tools/leaderelection/leaderelection.go, ``RunOrDie``, where ``Run`` returns without a result.
    """
    chosen = config if config is not None else LeaderElectionConfig()
    elector = LeaderElector(lock, replace(chosen, rejoin=False), client=client, metrics=metrics)
    if watchdog is not None:
        watchdog.set_elector(elector)
    return await elector.run(work)
