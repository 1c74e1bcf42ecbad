"""Decisions about planned faults, without I/O."""
