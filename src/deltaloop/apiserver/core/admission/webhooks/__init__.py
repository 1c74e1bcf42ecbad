"""Admission by webhooks: which are asked, what they are asked, and what their answers mean."""
