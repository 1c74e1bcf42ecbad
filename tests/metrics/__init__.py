"""Tests of the metrics adapters."""
