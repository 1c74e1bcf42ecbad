"""Admission plugins, in the order of the real server."""
