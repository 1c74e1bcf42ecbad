"""Certificates of webhooks: an authority of its own in a Secret, or files that another tool keeps."""
