"""Custom resource definitions and their resources."""
