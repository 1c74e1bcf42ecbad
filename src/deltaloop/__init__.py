"""The controller machinery of Kubernetes for Python."""
