"""What the server does by itself: garbage collection, namespaces that end, coordinated leases, its first objects."""
