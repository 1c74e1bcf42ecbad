"""Faults that tests inject between programs and the server, and into webhooks."""
