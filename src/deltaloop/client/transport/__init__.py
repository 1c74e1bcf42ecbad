"""Connections to an API server, and requests over them."""
