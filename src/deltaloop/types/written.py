"""What may stand in place of a typed dict where an object is written. For type checkers; the names are in the stub."""
