"""Built-in kinds of the served Kubernetes version: field types, defaults and versions."""
