"""Types and schemas of objects: structural rules, quantities, numbers, formats, and patterns in Go's syntax.

The package is pure and imports no other package except for the base errors.
"""
