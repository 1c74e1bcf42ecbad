"""The manager: caches, workers, health, webhooks, and an orderly end."""
