"""Tests of the room for threaded programs: real threads, on the real clock, with short waits for events only."""
