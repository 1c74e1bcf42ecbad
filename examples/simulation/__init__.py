"""Programs to try ``deltaloop simulate`` on."""
