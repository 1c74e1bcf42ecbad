"""The documentation is true: its snippets run, its pictures are drawn from the code, its pages are complete."""
