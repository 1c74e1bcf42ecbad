"""Test tools for us and for users: virtual time, and a pytest plugin that runs async tests in it.

This room may import everything; nothing of the product imports it.
"""

from deltaloop.testing.virtual_loop import StalledError, VirtualLoop, run_virtual

__all__ = ["StalledError", "VirtualLoop", "run_virtual"]
