"""Store of objects by key and revision, with history, lists, watches and drafts of writes."""
