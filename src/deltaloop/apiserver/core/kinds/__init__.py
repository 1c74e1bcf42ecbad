"""Behavior of individual built-in kinds."""
