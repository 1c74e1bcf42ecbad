"""Pure state machines of leader election."""
