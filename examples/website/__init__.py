"""The controller of the tutorial, and what it is deployed with."""
