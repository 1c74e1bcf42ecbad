"""What a manager is told: defaults, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.cache import InformerOptions
from deltaloop.runtime import ManagerOptions
from tests.having import having

DEFAULTS: dict[str, Any] = {
    "namespace": None,
    "warm_standbys": True,
    "preflight": True,
    "permissions": (),
    "sync_timeout": 120.0,
    "drain_timeout": 20.0,
    "shutdown_timeout": 30.0,
    "duplicate_signal_window": 0.5,
    "max_staleness": 600.0,
    "require_leadership": False,
    "loop_block_threshold": 1.0,
    "health": None,
    "metrics": None,
}


def test_options_have_documented_defaults() -> None:
    options = ManagerOptions()
    assert {name: getattr(options, name) for name in DEFAULTS} == DEFAULTS
    assert isinstance(options.informers, InformerOptions)
    assert options.informers.resync_period == 0.0


@pytest.mark.parametrize("name", ["sync_timeout", "max_staleness", "loop_block_threshold"])
@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf")])
def test_positive_durations_are_required(name: str, seconds: float) -> None:
    given: dict[str, Any] = {name: seconds}
    with pytest.raises(ValueError, check=having(argument=f"ManagerOptions.{name}")):
        ManagerOptions(**given)


@pytest.mark.parametrize("name", ["drain_timeout", "shutdown_timeout", "duplicate_signal_window"])
def test_negative_durations_are_rejected_but_zero_is_valid(name: str) -> None:
    given: dict[str, Any] = {name: -1.0}
    with pytest.raises(ValueError, check=having(argument=f"ManagerOptions.{name}")):
        ManagerOptions(**given)
    given = {name: 0.0}
    assert getattr(ManagerOptions(**given), name) == 0.0


def test_watchdog_can_be_disabled_and_wrong_type_is_rejected() -> None:
    assert ManagerOptions(loop_block_threshold=None).loop_block_threshold is None
    wrong: Any = "5"
    with pytest.raises(TypeError, check=having(option="ManagerOptions.drain_timeout")):
        ManagerOptions(drain_timeout=wrong)
