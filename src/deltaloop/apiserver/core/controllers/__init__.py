"""Controllers of the server: garbage collection, namespace deletion, coordinated leases and initial objects."""
