"""Client configuration from kubeconfig files and from the service account of a pod."""
