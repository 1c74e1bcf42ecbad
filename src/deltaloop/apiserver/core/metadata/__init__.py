"""Identity and metadata of objects, their types and validation."""
