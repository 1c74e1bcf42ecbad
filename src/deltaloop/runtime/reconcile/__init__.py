"""One run of a reconciler: its context, client, time limit, and report."""
