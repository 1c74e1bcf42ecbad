"""Decisions of the test tools; nothing here waits, looks at a clock or does I/O."""
