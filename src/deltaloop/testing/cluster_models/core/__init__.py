"""Decisions of the cluster models: pure functions from the current objects to the next steps."""
