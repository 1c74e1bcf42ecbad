"""Decisions about whether programs have settled, without I/O."""
