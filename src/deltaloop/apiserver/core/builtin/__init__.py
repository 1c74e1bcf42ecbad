"""What the served version of Kubernetes brings: its kinds, the types of their fields, defaults, other versions."""
