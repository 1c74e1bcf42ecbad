"""Other people's programs on the embedded server and on the real one, through the same scenario: ``make -C lab
world``."""
