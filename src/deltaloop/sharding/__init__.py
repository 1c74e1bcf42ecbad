"""Sharded controllers: several programs share the keys of one controller. Only the decisions exist so far."""
