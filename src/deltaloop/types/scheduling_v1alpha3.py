"""Types that kinds of other groups are made of. For type checkers; the names are in the stub."""
