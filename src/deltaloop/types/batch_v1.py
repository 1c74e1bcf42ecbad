"""Kinds of batch/v1. For type checkers; the names are in the stub."""
