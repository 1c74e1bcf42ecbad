"""Models of the rest of a cluster: scheduler, kubelet, and the controllers of workloads, volumes and endpoints."""
