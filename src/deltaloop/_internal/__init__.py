"""Modules that every room can import and no user needs, such as backoff and bounded HTTP servers."""
