"""The hooks of one controller, guarded."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from deltaloop.runtime.core.running import StopReason
from deltaloop.runtime.errors import InvalidControllerError, ReconcileStoppedError
from deltaloop.runtime.program.errors import HealthServerError, ShutdownTimeoutError
from deltaloop.runtime.reconcile.metrics import GuardedControllerMetrics

CALLS: dict[str, tuple[Any, ...]] = {
    "reconciled": ("success", ("counter",), 1.5),
    "active_workers": (1,),
    "max_concurrent_reconciles": (2,),
    "triggered": ("informer", "add"),
    "lingering": (3,),
    "hot_loop": ("self",),
    "slowed_down": (),
}


class Hooks:
    def __init__(self, error: Exception | None = None) -> None:
        self.told: list[tuple[Any, ...]] = []
        self._error = error

    def __getattr__(self, name: str) -> Callable[..., None]:
        def hook(*arguments: Any) -> None:
            self.told.append((name, *arguments))
            if self._error is not None:
                raise self._error

        return hook


@pytest.mark.parametrize("name", sorted(CALLS))
def test_metrics_hook_receives_controller_and_its_errors_are_logged(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    hooks: Any = Hooks()
    getattr(GuardedControllerMetrics(hooks, "maps"), name)(*CALLS[name])
    assert hooks.told == [(name, "maps", *CALLS[name])]
    assert caplog.records == []
    failing: Any = Hooks(ValueError("full"))
    getattr(GuardedControllerMetrics(failing, "maps"), name)(*CALLS[name])
    [record] = caplog.records
    assert (record.name, record.levelno, vars(record)["controller"]) == ("deltaloop.runtime", logging.ERROR, "maps")
    assert vars(record)["raised"] == "ValueError: full"
    getattr(GuardedControllerMetrics(None, "maps"), name)(*CALLS[name])


def test_errors_have_fields() -> None:
    declared = InvalidControllerError("maps", "take it out")
    assert (str(declared), declared.controller) == ("controller 'maps': take it out", "maps")
    stopped = ReconcileStoppedError("default/a", StopReason.TIMEOUT, "PUT /x")
    assert (stopped.key, stopped.reason) == ("default/a", StopReason.TIMEOUT)
    assert str(stopped) == "PUT /x rejected: the reconcile of 'default/a' must stop, because its timeout expired"
    left = ShutdownTimeoutError(["maps: a", "maps: b"])
    assert left.keys == ("maps: a", "maps: b")
    assert str(left) == "2 reconcile(s) did not end in time and were abandoned: maps: a, maps: b"
    unheard = HealthServerError("in use", host="h", port=1)
    assert (str(unheard), unheard.host, unheard.port) == ("in use", "h", 1)
