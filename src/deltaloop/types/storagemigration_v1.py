"""Kinds of storagemigration.k8s.io/v1. For type checkers; the names are in the stub."""
