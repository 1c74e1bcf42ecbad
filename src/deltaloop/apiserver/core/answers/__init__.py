"""What the server says of what it has: objects, lists and events rendered, tables, discovery, OpenAPI."""
