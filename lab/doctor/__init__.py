"""Ten prepared faults in real processes, each of which ``deltaloop doctor`` must name."""
