"""Go's regular expressions: syntax errors, and matches in linear time."""
