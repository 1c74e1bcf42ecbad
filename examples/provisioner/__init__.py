"""An example."""
