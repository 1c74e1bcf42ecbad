"""Pure decisions about binaries and arguments of a real server."""
