"""State machine of the reflector: lists, watches, waits and recovery from errors."""
