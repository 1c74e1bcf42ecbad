"""Go's regular expressions: which texts are patterns, and which other texts they match, in a time linear in both."""
