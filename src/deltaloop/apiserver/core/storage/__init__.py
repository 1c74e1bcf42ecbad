"""The store of objects by key and revision, its history, and what is read of it: lists, watches, drafts of a write."""
