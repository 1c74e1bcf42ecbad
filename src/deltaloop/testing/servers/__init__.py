"""Servers of tests: the embedded server, a real kube-apiserver, or a cluster of yours."""
