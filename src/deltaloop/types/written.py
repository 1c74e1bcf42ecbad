"""Types accepted instead of a typed dict in writes, for type checkers; the names are in the stub."""
