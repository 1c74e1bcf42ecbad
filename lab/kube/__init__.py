"""Builds a real kube-apiserver and etcd from their published Go modules: ``make -C lab kube``."""
