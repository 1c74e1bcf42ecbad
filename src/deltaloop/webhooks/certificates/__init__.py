"""Certificates of webhooks: deltaloop's own authority in a Secret, or files that another tool maintains."""
