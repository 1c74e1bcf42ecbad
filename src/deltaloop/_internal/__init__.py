"""Internal modules that all packages can import, such as backoff, fork safety and bounded HTTP servers."""
