"""Pure parts of webhooks: reviews, responses, and the configurations that register webhooks."""
