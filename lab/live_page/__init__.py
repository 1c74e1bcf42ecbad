"""The page of the health server in a real Chromium, with 10 000 objects and 1000 reconciles per second."""
