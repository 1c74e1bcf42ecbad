"""Results of plans: differences of objects, and their text."""
