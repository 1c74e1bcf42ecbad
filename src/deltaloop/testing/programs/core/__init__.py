"""Pure decisions about whether programs have settled."""
