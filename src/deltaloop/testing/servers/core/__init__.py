"""Decisions about binaries and arguments of a real server, without processes."""
