"""What the real server leaves to the controller manager, run beside the embedded one on request."""
