"""Methods of a client for the verbs of the API."""
