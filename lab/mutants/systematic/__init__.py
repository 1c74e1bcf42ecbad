"""Seeds every small mistake that Python's grammar offers into a room, and counts those that its tests let pass."""
