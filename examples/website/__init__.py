"""Controller of the tutorial with its manifests."""
