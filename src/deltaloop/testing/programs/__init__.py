"""Programs under test: replicas with their processes, caches and queues, and the world that they share."""
