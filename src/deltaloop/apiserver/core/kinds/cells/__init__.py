"""The cells of the built-in kinds' table rows, by the name of their column; the columns come from the data file."""
