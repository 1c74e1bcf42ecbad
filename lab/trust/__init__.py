"""The checks of the OpenSSF scorecard that need no forge."""
