"""Admission by policies: which apply, what their parameters are, and what their expressions say."""
