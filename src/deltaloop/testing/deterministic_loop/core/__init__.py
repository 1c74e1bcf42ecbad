"""Pure decisions about the order of tasks."""
