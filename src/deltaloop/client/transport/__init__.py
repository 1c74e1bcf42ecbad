"""Connections to an API server."""
