"""Kinds of other projects, written as classes, and held against the definitions that these projects publish."""
