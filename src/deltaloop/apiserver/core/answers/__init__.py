"""Response bodies: objects, lists, watch events, tables, discovery and OpenAPI."""
