"""Event loops on which a run is the same each time: virtual time, threads, processes and connections in memory."""
