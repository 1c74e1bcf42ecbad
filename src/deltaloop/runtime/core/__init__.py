"""Pure decisions of the runtime, without I/O."""
