"""Servers for tests: the embedded server, a real kube-apiserver, or an existing cluster."""
