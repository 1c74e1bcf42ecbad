"""Core of the embedded API server, without I/O."""
