"""Other people's clients, unmodified, against the embedded server."""
