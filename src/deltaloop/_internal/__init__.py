"""Modules that every room can import and no user needs."""
