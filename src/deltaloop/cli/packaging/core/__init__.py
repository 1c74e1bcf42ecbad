"""Decisions of packaging, without file access."""
