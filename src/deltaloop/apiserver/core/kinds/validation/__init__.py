"""Validation of built-in kinds: the everyday mistakes, refused in the real server's words.

Not all that it checks.
"""
