"""Structural schemas of custom resources: check them, compile them once, then prune, default and validate by them."""
