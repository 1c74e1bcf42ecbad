"""Authorization, access reviews, service account tokens and the audit log."""
