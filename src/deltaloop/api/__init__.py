"""What an object is: resource types, resources, keys, versions, selectors, Status errors, triggers.

This room is ground: it imports no other room, does no I/O and knows no clock. Everything that names, decodes, compares
or selects a Kubernetes object lives here, for the client's side and the embedded server's side alike.
"""
