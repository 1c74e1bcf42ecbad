"""Single reconciles: context, client, execution, timeout and observation."""
