"""Old names in programs."""
