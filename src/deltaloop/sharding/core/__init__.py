"""Decisions of the members and the coordinator."""
