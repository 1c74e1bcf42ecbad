"""Decisions for several programs that share the keys of one controller: owners, hand-over and membership."""
