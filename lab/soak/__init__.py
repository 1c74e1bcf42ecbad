"""The soak: a program that runs for long among troubles, and whose size is looked at."""
