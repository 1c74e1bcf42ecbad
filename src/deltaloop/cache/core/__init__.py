"""State machines of the cache, without I/O."""
