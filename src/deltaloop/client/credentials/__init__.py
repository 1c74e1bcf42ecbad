"""Credentials of a client and their renewal."""
