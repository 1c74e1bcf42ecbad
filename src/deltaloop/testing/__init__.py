"""Test tools for us and for users: virtual time, a pytest plugin that runs async tests in it, and a relay with faults.

This room may import everything; nothing of the product imports it.
"""

from deltaloop.testing.core.relay import Corrupt, Cut, Delay, Direction, Fault, HalfOpen, Reset, Stall, Throttle
from deltaloop.testing.relay import Relay, RelayConnection
from deltaloop.testing.virtual_loop import StalledError, VirtualLoop, run_virtual

__all__ = [
    "Corrupt",
    "Cut",
    "Delay",
    "Direction",
    "Fault",
    "HalfOpen",
    "Relay",
    "RelayConnection",
    "Reset",
    "Stall",
    "StalledError",
    "Throttle",
    "VirtualLoop",
    "run_virtual",
]
