"""Tests of the work queue."""
