"""A corpus of our own, for where no other is: it has every combination of features that public schemas have."""
