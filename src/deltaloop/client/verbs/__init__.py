"""The verbs of the API as methods of a client."""
