"""Models of cluster components: scheduler, kubelet, and controllers of workloads, volumes and endpoints."""
