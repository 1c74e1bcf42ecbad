"""Server-side apply: field ownership and merging."""
