"""Programs under test: replicas with their processes, caches and queues, and their shared state."""
