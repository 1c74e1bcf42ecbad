"""Counts of the calls on the hot path, compared with committed numbers: ``python -m tests.counts``."""
