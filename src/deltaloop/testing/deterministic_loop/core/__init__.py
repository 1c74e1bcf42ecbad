"""Decisions about the order of tasks, without I/O."""
