"""Decisions of ``deltaloop new``, without file access."""
