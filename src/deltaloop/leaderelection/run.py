"""``run_or_die``: an elector for a program that is nothing without its leadership, and is restarted when it ends."""

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
    """Run ``work`` once this process leads, and hand its result on; a loss of leadership is an error.

    The process does not contend again after a loss, whatever the configuration's ``rejoin`` says: let the error end it.
    Cancellation cancels the work, waits until it has ended, releases the lock and goes on.

    Args:
        lock: The lock to contend for, such as a ``LeaseLock``.
        work: Called with the term; cancelled when leadership is lost.
        config: Durations and callbacks, as in client-go.
        client: Client that ``term.client`` guards; the lock's own by default.
        metrics: Hooks for metrics.
        watchdog: A health check that watches the elector from now on.

    Raises:
        LeadershipLostError: If leadership was lost.

    Source: client-go tools/leaderelection/leaderelection.go, ``RunOrDie``; there the end of ``Run`` says nothing.
    """
    chosen = config if config is not None else LeaderElectionConfig()
    elector = LeaderElector(lock, replace(chosen, rejoin=False), client=client, metrics=metrics)
    if watchdog is not None:
        watchdog.set_elector(elector)
    return await elector.run(work)
