"""Programs under test: replicas with their processes, caches and queues, and the state that they share."""
