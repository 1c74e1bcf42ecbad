"""Decisions about the certificates of webhooks, without clock, network or cryptography."""
