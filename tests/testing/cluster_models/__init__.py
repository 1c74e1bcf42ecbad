"""Tests of what stands in for a cluster."""
