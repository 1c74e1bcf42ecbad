"""A whole controller beside others': the same operator in several programs, on one server, through the same phases."""
