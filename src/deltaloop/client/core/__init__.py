"""State machines and pure functions of the client."""
