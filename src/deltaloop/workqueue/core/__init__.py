"""State machines of the work queue, without clocks, event loops, locks or logs."""
