"""Builds and measures the image of a new project."""
