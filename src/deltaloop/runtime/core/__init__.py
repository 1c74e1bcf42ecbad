"""Pure decisions of the runtime."""
