"""Membership changes of a sharded program with real processes and faults of processes and network."""
