"""Decisions of the test tools, without waiting, clocks or I/O."""
