"""The driver's side (client, informers, election, manager) on real API servers of several versions."""
