"""Records what a command prints as a picture for the documentation."""
