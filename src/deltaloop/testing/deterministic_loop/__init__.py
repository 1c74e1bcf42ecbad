"""Deterministic event loops: virtual time, threads, processes and in-memory connections."""
