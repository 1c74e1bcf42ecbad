"""The types of objects: the schema tree, structural rules, quantities, numbers, formats, patterns in RE2's language.

A ground room: it decides and does no I/O, and imports nothing of the others but the root of all errors.
"""
