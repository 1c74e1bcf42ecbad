"""The program: ``dl.run``, the manager, health, webhooks, the embedded server, and an orderly end."""
