"""Measurements: this library beside others, and its parts by themselves."""
