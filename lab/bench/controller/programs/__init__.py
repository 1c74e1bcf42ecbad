"""The same operator, once for each library."""
