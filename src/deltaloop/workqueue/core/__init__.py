"""Every decision of the work queue, as pure state machines: no clock, no loop, no lock, no log."""
