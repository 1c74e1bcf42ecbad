"""Pure state machines of this room."""
