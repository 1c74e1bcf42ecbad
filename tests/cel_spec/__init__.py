"""The specification's own simple tests, which are other people's data: ``make cel-spec``."""
