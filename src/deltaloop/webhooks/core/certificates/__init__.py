"""What certificates of webhooks are decided by: no clock, no network, no cryptography."""
