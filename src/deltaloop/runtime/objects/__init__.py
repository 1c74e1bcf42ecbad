"""Objects that a reconcile reads and writes: caches, children, status and tracked objects."""
