"""Pure decisions about planned faults."""
