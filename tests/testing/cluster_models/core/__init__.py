"""Tests of its models, on a naive store."""
