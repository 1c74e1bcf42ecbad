"""Kinds of autoscaling/v2. For type checkers; the names are in the stub."""
