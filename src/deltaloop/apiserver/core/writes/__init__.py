"""The verbs that change objects: create, update, patch, apply, delete and what subresources do."""
