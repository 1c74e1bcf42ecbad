"""Tests of the work queue's cores: no loop, no clock."""
