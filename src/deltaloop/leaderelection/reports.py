"""Logs, callbacks, metrics and events of an elector.

Exceptions of callbacks and hooks are only logged, because a broken metric must not cost the lease.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, TypeVarTuple, final

from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.leaderelection.config import LeaderElectionConfig, LeaderElectionMetrics
from deltaloop.leaderelection.core.election import BecameLeader, LossReason, ReleaseOutcome
from deltaloop.leaderelection.lock import Lock

Ts = TypeVarTuple("Ts")

_log: Final = logging.getLogger("deltaloop.leaderelection")


@final
class Reports:
    """Reporter of one elector; the elector sets ``record_event`` later."""

    record_event: Callable[[str], None]

    def __init__(self, lock: Lock, config: LeaderElectionConfig, metrics: LeaderElectionMetrics | None) -> None:
        self._errors = ErrorSummaries()
        self.name: str = config.name or lock.describe()
        self._lock = lock
        self._config = config
        self._metrics = metrics

    def contending(self) -> None:
        _log.info("contending for leadership", extra=self._names())
        self._leader_off()

    def won(self, fact: BecameLeader) -> None:
        _log.info("won the leader election", extra=self._names(fencing_token=fact.token, transitions=fact.transitions))

    def started_leading(self) -> None:
        if self._metrics is not None:
            self._call("leader_on", self._metrics.leader_on, self.name)
        self._call("record_event", self.record_event, "became leader")
        if self._config.on_started_leading is not None:
            self._call("on_started_leading", self._config.on_started_leading)

    def lost(self, because: LossReason) -> None:
        """Report that leadership was lost and that the body is being canceled."""
        _log.warning("lost leadership, canceling work", extra=self._names(because=str(because)))
        self._leader_off()

    def stopped_leading(self, *, was_lost: bool) -> None:
        """Report the end of the body, before the lock is released."""
        if not was_lost:
            self._leader_off()
        self._call("record_event", self.record_event, "stopped leading")
        if self._config.on_stopped_leading is not None:
            self._call("on_stopped_leading", self._config.on_stopped_leading)

    def still_running(self, task: str, because: LossReason) -> None:
        """Report a body that continues after leadership was lost."""
        _log.warning(
            "work continues after leadership was lost: it swallows cancellation, or its cleanup is slow",
            extra=self._names(task=task, because=str(because)),
        )

    def ended(self, because: str, outcome: ReleaseOutcome) -> None:
        _log.info("stopped leading", extra=self._names(because=because, lock_was=str(outcome)))

    def new_leader(self, identity: str) -> None:
        _log.info("new leader", extra=self._names(leader=identity))
        if self._config.on_new_leader is not None:
            self._call("on_new_leader", self._config.on_new_leader, identity)

    def slow_path(self) -> None:
        """Report that the first attempt of a renewal failed, so the leader reads the lock."""
        if self._metrics is not None:
            self._call("slow_path_exercised", self._metrics.slow_path_exercised, self.name)

    def _leader_off(self) -> None:
        if self._metrics is not None:
            self._call("leader_off", self._metrics.leader_off, self.name)

    def _call(self, name: str, callback: Callable[[*Ts], object], *arguments: *Ts) -> None:
        try:
            callback(*arguments)
        except Exception as error:  # noqa: BLE001 - an error of a hook must not cost the lease
            message, extra = "leader election callback raised an exception", self._names(callback=name)
            self._errors.log(_log, logging.ERROR, message, error, now=time.monotonic(), extra=extra)

    def _names(self, **more: object) -> dict[str, object]:
        return {"elector": self.name, "lock": self._lock.describe(), "identity": self._lock.identity, **more}
