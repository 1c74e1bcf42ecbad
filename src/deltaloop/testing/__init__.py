"""Test tools for us and for users: virtual time, a pytest plugin with servers, and a relay with faults.

``eventually`` asserts that something becomes true, ``VirtualLoop`` makes waits take no time, ``Relay`` is a network
that fails on demand; the fixtures are in ``pytest_plugin``. This room may import everything; nothing of the product
imports it.

A name is imported when it is first used: pytest loads the plugin in every project that has deltaloop installed, which
must not wait for what it does not use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltaloop.testing.attempts import eventually, eventually_blocking
    from deltaloop.testing.cluster import Cluster
    from deltaloop.testing.core.attempts import EventuallyError
    from deltaloop.testing.core.relay import Corrupt, Cut, Delay, Direction, Fault, HalfOpen, Reset, Stall, Throttle
    from deltaloop.testing.relay import Relay, RelayConnection
    from deltaloop.testing.virtual_loop import StalledError, VirtualLoop, run_virtual

_HOME_OF = {
    "Cluster": "cluster",
    "Corrupt": "core.relay",
    "Cut": "core.relay",
    "Delay": "core.relay",
    "Direction": "core.relay",
    "EventuallyError": "core.attempts",
    "Fault": "core.relay",
    "HalfOpen": "core.relay",
    "Relay": "relay",
    "RelayConnection": "relay",
    "Reset": "core.relay",
    "Stall": "core.relay",
    "StalledError": "virtual_loop",
    "Throttle": "core.relay",
    "VirtualLoop": "virtual_loop",
    "eventually": "attempts",
    "eventually_blocking": "attempts",
    "run_virtual": "virtual_loop",
}

__all__ = [
    "Cluster",
    "Corrupt",
    "Cut",
    "Delay",
    "Direction",
    "EventuallyError",
    "Fault",
    "HalfOpen",
    "Relay",
    "RelayConnection",
    "Reset",
    "Stall",
    "StalledError",
    "Throttle",
    "VirtualLoop",
    "eventually",
    "eventually_blocking",
    "run_virtual",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
