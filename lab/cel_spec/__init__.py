"""The specification's own simple tests, which are other people's data: ``make -C lab cel-spec``."""
