"""One conformance suite, two servers: each case runs on the embedded API server and on a real kube-apiserver."""
