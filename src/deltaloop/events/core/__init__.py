"""Pure state machines of events."""
