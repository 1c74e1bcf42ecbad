"""Objects that a reconciler reads and writes: caches, children, status, tracked kinds."""
