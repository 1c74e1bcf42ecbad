"""What the reflector decides: when to list, when to watch, when to wait, and what follows which error."""
