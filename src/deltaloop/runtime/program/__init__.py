"""Programs: ``dl.run``, the manager, health, webhooks, the embedded server and shutdown."""
