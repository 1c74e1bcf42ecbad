"""Verbs that change objects: create, update, patch, apply, delete and subresources."""
